import { createHmac } from 'node:crypto';
import type { PayoutStatus } from './escrow.ts';
import { ApiError } from './reason.ts';
import { ValidationError } from './violation.ts';

/** What callers are told of. More may follow, so whoever reads them passes over what it does not know. */
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

/** One of them. */
export type EventType = (typeof eventTypes)[number];

/** How long events are kept, in seconds: 30 days. */
export const eventRetentionS = 2_592_000;

/** How long before its end a hold is told to expire, in seconds: a day. */
export const holdWarningS = 86_400;

/** Of which parts of the monthly quota a platform is told that they are used, in percent. */
export const usageThresholds = [80, 100] as const;

/** What happened, to what: an event as it is written down. */
export interface NewEvent {
  readonly type: EventType;
  /** Whose it is. */
  readonly callerId: number;
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly filingNo?: string | undefined;
  readonly escrowId?: string | undefined;
  /** The state of the order behind it. */
  readonly state?: string | undefined;
  readonly keyId?: string | undefined;
  /** YYYY-MM of the business calendar. */
  readonly month?: string | undefined;
  /** Of the monthly quota. */
  readonly percent?: number | undefined;
  readonly webhookId?: string | undefined;
}

/** An event in its place. */
export interface Event extends NewEvent {
  /** Among the events of its caller: from 1, and one more each time, but for the gap behind a restore. */
  readonly sequence: number;
  /** Among all events; counts up likewise. */
  readonly position: number;
}

/** The number that a platform is left without behind a restore: the original may have given that many since the backup. */
export const restoredEventsGap = 1_000_000;

/** How many hexadecimal digits an id has. */
const idDigits = 32;

/**
 * The id of an event: the same whenever and wherever it is told, and of no other event of the deployment that `key`, 32 bytes, is of.
 */
export function eventId(
  key: Uint8Array,
  { callerId, sequence }: Pick<Event, 'callerId' | 'sequence'>,
): string {
  const mac = createHmac('sha256', key).update(`${callerId}/${sequence}`).digest('hex');
  return `evt_${mac.slice(0, idDigits)}`;
}

/** The resource that an event is about: events of one are sent in their order. */
export function resourceOf({ escrowId, filingNo, keyId, webhookId, month }: NewEvent): string {
  return escrowId ?? filingNo ?? keyId ?? webhookId ?? month ?? '';
}

/** The event of a RELEASED order whose payment had the status `before` and has another one now. */
export function payoutEvent(before: PayoutStatus, now: PayoutStatus): EventType {
  const wasDisputed = before === 'DISPUTED';
  if (now === 'DISPUTED') return 'escrow.payment_disputed';
  if (now === 'PAID_OUT') return wasDisputed ? 'escrow.dispute_won' : 'escrow.payment_restored';
  return wasDisputed && now === 'RETURNED' ? 'escrow.dispute_lost' : 'escrow.payment_returned';
}

/** The part of the quota that the last of `calls` used up, in percent; undefined if it is none that is told. */
export function usageThreshold(calls: number, limit: number): number | undefined {
  return usageThresholds.findLast((percent) => calls === Math.ceil((limit * percent) / 100));
}

/** The error of a place behind which events were kept once; `oldest` is the place of the first that still is, if one is. */
export function eventsExpired(oldest: number | undefined): ApiError {
  const kept = oldest === undefined ? 'None is kept now' : `The oldest that is kept is ${oldest}`;
  const message = `Events behind \`after\` are not kept any more: they are for 30 days. ${kept}; leave \`after\` out to go on from there.`;
  return new ApiError('EVENTS_EXPIRED', message);
}

/** The error of a place that no event has come to yet. */
export const eventsAhead = (newest: number): ApiError =>
  new ValidationError('VALIDATION_FAILED', [
    { field: 'after', rule: `must not be above ${newest}, the place of the newest event` },
  ]);
