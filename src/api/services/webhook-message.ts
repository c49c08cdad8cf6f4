import type { Event } from '../../domain/event.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import { type EventMessageDependencies, eventMessage } from './event-message.ts';

/** What endpoints are sent of an event: its id, and JSON that has the event as the feed has it. The same whenever it is made. */
export function webhookMessage(event: Event, making: EventMessageDependencies): WebhookMessage {
  return messageOf({ ...eventMessage(event, making), sequence: event.sequence });
}

/** What all that endpoints are sent has, besides what it tells. */
interface Told {
  readonly id: string;
  readonly type?: string | undefined;
  /** RFC 3339. */
  readonly at?: string | undefined;
}

/** What endpoints are sent: JSON as Standard Webhooks has it, around what is told. */
export function messageOf<Data extends Told>(data: Data): WebhookMessage {
  const { id, type, at: timestamp } = data;
  return { id, body: JSON.stringify({ type, timestamp, data }) };
}
