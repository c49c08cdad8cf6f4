import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EventSchema } from '../../../gen/artseal/v1/event_pb.ts';
import { type Event, eventId } from '../../domain/event.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** What event messages are made with. */
type EventMessageDependencies = Pick<ServiceDependencies, 'idKey' | 'timestamp'>;

/** The message of an event, the same in the feed and in webhooks. */
export function eventMessage(
  event: Event,
  { idKey, timestamp }: EventMessageDependencies,
): MessageInitShape<typeof EventSchema> & { readonly id: string } {
  const { sequence, type, atMs, filingNo, escrowId, state, keyId, month, percent, webhookId } = event;
  const resource = { filingNo, escrowId, state, keyId, month, percent, webhookId };
  const definite = Object.fromEntries(Object.entries(resource).filter(([, value]) => value !== undefined));
  return { id: eventId(idKey, event), sequence: BigInt(sequence), type, at: timestamp(atMs), ...definite };
}

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
