import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EventSchema } from '../../../gen/artseal/v1/event_pb.ts';
import { type Event, eventId } from '../../domain/event.ts';

/** What event messages need. */
export interface EventMessageDependencies {
  /** The key of event ids, as in `eventId`. */
  readonly idKey: Uint8Array;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
}

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
