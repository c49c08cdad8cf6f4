import type { Event } from '../../domain/event.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import { type EventMessageDependencies, eventMessage } from './event-message.ts';

/** The webhook message of an event. Its bytes are the same for every attempt. */
export function webhookMessage(event: Event, making: EventMessageDependencies): WebhookMessage {
  return messageOf({ ...eventMessage(event, making), sequence: event.sequence });
}

/** Members of every webhook message. */
interface MessageData {
  readonly id: string;
  readonly type?: string | undefined;
  /** RFC 3339. */
  readonly at?: string | undefined;
}

/** Wraps data as Standard Webhooks specifies. */
export function messageOf<Data extends MessageData>(data: Data): WebhookMessage {
  const { id, type, at: timestamp } = data;
  return { id, body: JSON.stringify({ type, timestamp, data }) };
}
