import { createHmac } from 'node:crypto';
import type { PayoutStatus } from './escrow.ts';
import { ApiError } from './reason.ts';
import { fieldError } from './violation.ts';

/** The types of events. Clients ignore types that they do not know: new ones may follow. */
export const eventTypes = [
  'filing.created',
  'escrow.frozen',
  'escrow.released',
  'escrow.refunded',
  'escrow.closed',
  'escrow.in_review',
  'escrow.hold_expiring',
  'escrow.payment_returned',
  'escrow.payment_disputed',
  'escrow.dispute_won',
  'escrow.dispute_lost',
  'escrow.payment_restored',
  'provenance.transferred',
  'key.rotated',
  'usage.threshold',
  'webhook.disabled',
] as const;

/** A type of event. */
export type EventType = (typeof eventTypes)[number];

/** How long events are kept, in seconds: 30 days. */
export const eventRetentionS = 2_592_000;

/** How long before a hold expires its event is sent, in seconds: a day. */
export const holdWarningS = 86_400;

/** The used parts of the monthly quota that are an event, in percent. */
const usageThresholds = [80, 100] as const;

/** An event to be stored. */
export interface NewEvent {
  readonly type: EventType;
  readonly callerId: number;
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly filingNo?: string | undefined;
  readonly escrowId?: string | undefined;
  /** The state of the order after the event. */
  readonly state?: string | undefined;
  readonly keyId?: string | undefined;
  /** YYYY-MM of the business calendar. */
  readonly month?: string | undefined;
  /** Of the monthly quota. */
  readonly percent?: number | undefined;
  readonly webhookId?: string | undefined;
}

/** A stored event. */
export interface Event extends NewEvent {
  /** Number among the events of its caller: counts from 1, with a gap after a restore. */
  readonly sequence: number;
  /** Number among all events, likewise. */
  readonly position: number;
}

/** How many sequences a restore skips: the database before it may have used that many since the backup. */
export const restoredEventsGap = 1_000_000;

/** How many hexadecimal digits an id has. */
const idDigits = 32;

/** Returns the id of an event. It is unique in the deployment that `key`, 32 bytes, belongs to, and never changes. */
export function eventId(
  key: Uint8Array,
  { callerId, sequence }: Pick<Event, 'callerId' | 'sequence'>,
): string {
  const mac = createHmac('sha256', key).update(`${callerId}/${sequence}`).digest('hex');
  return `evt_${mac.slice(0, idDigits)}`;
}

/** The resource that an event is about. Webhooks send the events of a resource in order. */
export function resourceOf({ escrowId, filingNo, keyId, webhookId, month }: NewEvent): string {
  return escrowId ?? filingNo ?? keyId ?? webhookId ?? month ?? '';
}

/** The event of a RELEASED order whose payment changes from the status `before` to `now`. */
export function payoutEvent(before: PayoutStatus, now: PayoutStatus): EventType {
  const wasDisputed = before === 'DISPUTED';
  if (now === 'DISPUTED') return 'escrow.payment_disputed';
  if (now === 'PAID_OUT') return wasDisputed ? 'escrow.dispute_won' : 'escrow.payment_restored';
  return wasDisputed && now === 'RETURNED' ? 'escrow.dispute_lost' : 'escrow.payment_returned';
}

/** The threshold that the last of `calls` reached, in percent; undefined for none. */
export function usageThreshold(calls: number, limit: number): number | undefined {
  return usageThresholds.findLast((percent) => calls === Math.ceil((limit * percent) / 100));
}

/** The error for a cursor whose next events were deleted. `oldest` is the sequence of the oldest event, if there is one. */
export function eventsExpired(oldest: number | undefined): ApiError {
  const next =
    oldest === undefined
      ? 'There are no events now: omit `after`.'
      : `The oldest event is ${oldest}: continue after ${oldest - 1}.`;
  const message = `The cursor \`after\` has expired: events are kept for 30 days. ${next}`;
  return new ApiError('EVENTS_EXPIRED', message);
}

/** The error for a cursor after the newest event. */
export const eventsAhead = (newest: number): ApiError =>
  fieldError('VALIDATION_FAILED', 'after', `must not be above ${newest}, the cursor of the newest event`);

/** The cursor of the newest event in the message of such an error; undefined if it is of another error. */
export function newestEventIn(message: string): number | undefined {
  const [, newest] = /after must not be above (\d+), the cursor of the newest event/.exec(message) ?? [];
  return newest === undefined ? undefined : Number(newest);
}
