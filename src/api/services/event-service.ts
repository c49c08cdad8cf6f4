import type { MessageInitShape } from '@bufbuild/protobuf';
import { type EventSchema, EventService } from '../../../gen/artseal/v1/event_pb.ts';
import { type Event, eventId } from '../../domain/event.ts';
import { ApiError } from '../../domain/reason.ts';
import { checkRange, ValidationError, type Violation } from '../../domain/violation.ts';
import type { WebhookMessage } from '../../events/webhooks/attempt.ts';
import type { EventPage, EventsFrom, EventWithCaller } from '../../store/event-commands.ts';
import type { Execute } from '../../store/store.ts';
import { type Call, type Implementation, implement, ownerScope, type StreamCall } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** How long a call may wait for an event, in seconds. */
const waitS = { min: 0, max: 30 } as const;

/** The longest silence on a stream before it sends its cursor, in milliseconds. */
const heartbeatMs = 15_000;

/** A cursor: a sequence of one caller's events, or a position among all events. */
interface Cursor extends EventsFrom {
  /** Undefined for all. */
  readonly callerId: number | undefined;
}

/** The operations of EventService. Callers list their own events. An internal system may watch those of all. */
export function createEventService({ feed, polls, clock, ...making }: ServiceDependencies): Implementation {
  /** Waits for events of a caller. Returns an empty page after `waitMs`. */
  async function waitForEvents(callerId: number, after: number | undefined, waitMs: number, call: Call) {
    const untilMs = clock.monotonicMs() + waitMs;
    using poll = polls.begin(callerId);
    // Listens before the first read, so that no event between the two is missed.
    using listener = feed.listen(callerId, poll.signal);
    for (;;) {
      const page = await readEvents({ callerId, after }, call.execute);
      const leftMs = untilMs - clock.monotonicMs();
      const isOver = leftMs <= 0 || poll.signal.aborted || feed.isEnded();
      if (page.events.length > 0 || isOver) return page;
      await call.pause(() => listener.wait(leftMs));
    }
  }

  async function* watch({ callerId, after }: Cursor, { execute, signal }: StreamCall) {
    using listener = feed.listen(callerId, signal);
    const cursorOf = ({ position, sequence }: EventWithCaller) =>
      callerId === undefined ? position : sequence;
    let page = await readEvents({ callerId, after }, execute);
    const [first] = page.events;
    yield { next: BigInt(after ?? (first === undefined ? page.next : cursorOf(first) - 1)) };
    let sentMs = clock.monotonicMs();
    while (!signal.aborted && !feed.isEnded()) {
      for (const event of page.events) {
        const cursor = BigInt(cursorOf(event));
        yield { event: eventMessage(event, making), platform: event.caller, next: cursor };
        sentMs = clock.monotonicMs();
      }
      const { next } = page;
      const silentMs = clock.monotonicMs() - sentMs;
      if (page.events.length === 0 && silentMs < heartbeatMs) await listener.wait(heartbeatMs - silentMs);
      page = await readEvents({ callerId, after: next }, execute);
      if (page.events.length > 0 || clock.monotonicMs() - sentMs < heartbeatMs) continue;
      yield { next: BigInt(next) };
      sentMs = clock.monotonicMs();
    }
  }

  return implement(EventService, 'read', {
    listEvents: {
      check: ({ after, waitSeconds = 0 }) => [
        ...checkAfter(after),
        ...checkRange('waitSeconds', waitSeconds, waitS),
      ],
      run: async ({ waitSeconds = 0, ...request }, call) => {
        const { callerId } = call.principal;
        const after = numberOf(request.after);
        const { events, next } =
          waitSeconds === 0
            ? await readEvents({ callerId, after }, call.execute)
            : await waitForEvents(callerId, after, waitSeconds * 1_000, call);
        return { events: events.map((event) => eventMessage(event, making)), next: BigInt(next) };
      },
    },
    watchEvents: {
      check: ({ after }) => checkAfter(after),
      run: async function* ({ platform, after }, call) {
        const callerId = await callerWatched(platform, call);
        yield* watch({ callerId, after: numberOf(after) }, call);
      },
    },
  });
}

/** Reads a page. Throws EVENTS_EXPIRED, and VALIDATION_FAILED for a cursor after the newest event. */
export function readEvents({ callerId, ...from }: Cursor, execute: Execute): Promise<EventPage> {
  return callerId === undefined
    ? execute({ kind: 'ReadAllEvents', ...from })
    : execute({ kind: 'ReadEvents', callerId, ...from });
}

/**
 * Returns the caller whose events a call watches; undefined for all callers. Throws NOT_FOUND, and PERMISSION_DENIED for a token
 * that acts for another platform.
 */
async function callerWatched(
  platform: string,
  { principal, execute }: StreamCall,
): Promise<number | undefined> {
  const owner = ownerScope(principal);
  if (platform === '') return owner;
  if (owner === undefined) return callerNamed(platform, execute);
  if (platform === principal.caller) return owner;
  const message = `The token acts for ${principal.caller} and cannot read the events of another platform.`;
  throw new ApiError('PERMISSION_DENIED', message);
}

/** Returns the id of the caller that the field `platform` names. Throws NOT_FOUND. */
export async function callerNamed(name: string, execute: Execute): Promise<number> {
  try {
    return (await execute({ kind: 'FindCaller', name })).callerId;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const violations = error.violations.map(({ rule }) => ({ field: 'platform', rule }));
    throw new ValidationError(error.reason, violations);
  }
}

/** An optional number of a message. */
export const numberOf = (value: bigint | undefined) => (value === undefined ? undefined : Number(value));

/** Checks a cursor. */
export const checkAfter = (after = 0n): Violation[] =>
  checkRange('after', Number(after), { min: 0, max: Number.MAX_SAFE_INTEGER });

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
