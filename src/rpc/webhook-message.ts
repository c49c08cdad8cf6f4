import type { Event } from '../domain/event.ts';
import type { WebhookMessage } from '../webhooks/attempt.ts';
import { type EventMessageDependencies, eventMessage } from './event-message.ts';

/** What endpoints are sent of an event: its id, and JSON that has the event as the feed has it. The same whenever it is made. */
export function webhookMessage(event: Event, making: EventMessageDependencies): WebhookMessage {
  const data = { ...eventMessage(event, making), sequence: event.sequence };
  const { id, type, at: timestamp } = data;
  return { id, body: JSON.stringify({ type, timestamp, data }) };
}
