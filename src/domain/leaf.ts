import { hash } from 'node:crypto';
import { aheadMaxS } from './clock.ts';
import type { ProvenanceEvent } from './provenance.ts';

/**
 * The leaves of the evidence log. Their data is public for ever, so it contains nothing about works or people. A leaf commits to
 * the record and a salt that is stored with the record. With both anyone can verify the commitment. Once the salt is erased nobody
 * can find out what was recorded, and all proofs stay valid.
 */

/** The version of the formats of leaves and bundles. */
export const leafVersion = 1;

/** How the name of a log begins if no setting names it, which only a sandbox allows. */
export const madeUpOriginStart = 'artseal.invalid/';

/**
 * By how many seconds a RECORDS_ERASED of the log `origin` may count more age than its time allows, as auditors count it. `ahead`
 * is what it says.
 */
export function countedAheadS(ahead: unknown, origin: string): number {
  const counts =
    typeof ahead === 'number' && ahead >= 0 && ahead <= aheadMaxS && origin.startsWith(madeUpOriginStart);
  return counts ? ahead : 0;
}

/** Bytes of the salt of a record of version 1, and of a later record. */
export const saltBytes = 32;

/** The leaf of a record. */
export interface RecordLeaf {
  /** FILING for the filing itself, which is its first record. */
  readonly kind: 'FILING' | Exclude<ProvenanceEvent, 'SUBMITTED'>;
  /** The filing number. */
  readonly number: string;
  /** The number of the record among those of the filing; 1 is the filing itself. */
  readonly sequence: number;
  /** When it was recorded, Unix seconds. */
  readonly timeS: number;
  /** 64 lower-case hex digits: see `filingCommitment`, and `commitmentTo` for later records. */
  readonly commitment: string;
}

/**
 * The kinds of log events, which are public:
 * - LOG_BEGUN: the log began. `adopted` is the number of earlier records, whose leaves are before this one in any order of times.
 * - LOG_FORKED: the log continues under the new `origin`, since the database differed from what had been published. `previous` is
 *   the note of the last checkpoint of the old origin.
 * - KEY_ADDED, KEY_RETIRED: the verifier key `vkey` signs from now on or from `from`, Unix seconds; or it signs no more.
 * - NUMBERS_SKIPPED: filing numbers that are never issued: those of `year` after `after`, up to `through`.
 * - CLOCK_ACCEPTED: an operator confirmed the time `timeS`, although it is before the newest record or long after it.
 * - RECORDS_ERASED: the texts and salts of expired records were erased. `records` is their number, `leaves` their leaves (see
 *   `leafRanges`), `before` the latest time that they can have, Unix seconds. `ahead` is by how many seconds the clock of the
 *   sandbox, by which the retention ended, was ahead of the time of the leaf; left out if it was not. Only a log with a made-up
 *   name has it.
 */
export type LogEventKind =
  | 'LOG_BEGUN'
  | 'LOG_FORKED'
  | 'KEY_ADDED'
  | 'KEY_RETIRED'
  | 'NUMBERS_SKIPPED'
  | 'CLOCK_ACCEPTED'
  | 'RECORDS_ERASED';

/** The leaf of a log event. */
export interface LogEventLeaf {
  readonly kind: LogEventKind;
  /** Its number among the log events, from 1. */
  readonly sequence: number;
  readonly timeS: number;
  /** Texts and safe integers, by names of Latin letters. */
  readonly detail: LogEventDetail;
}

/** The members of a log event. */
export type LogEventDetail = Readonly<Record<string, string | number>>;

/** The text in place of a filing number in the leaf of a log event. */
const logEventNumber = 'LOG';

/** The commitment to a record: SHA-256 of its salt and its evidence hash, both as bytes; lower-case hex. */
export function commitmentTo(evidenceHash: string, salt: Uint8Array): string {
  return hash('sha256', Buffer.concat([salt, Buffer.from(evidenceHash, 'hex')]), 'hex');
}

/** The data of the leaf of a record: RFC 8785 canonical JSON. None of its texts contains a character that JSON escapes. */
export function recordLeafData({ kind, number, sequence, timeS, commitment }: RecordLeaf): string {
  return (
    `{"commitment":"${commitment}","kind":"${kind}","number":"${number}","sequence":${sequence},` +
    `"time":${timeS},"version":${leafVersion}}`
  );
}

/** The data of the leaf of a log event: RFC 8785 canonical JSON. */
export function logEventLeafData({ kind, sequence, timeS, detail }: LogEventLeaf): string {
  return JSON.stringify({
    detail: sorted(detail),
    kind,
    number: logEventNumber,
    sequence,
    time: timeS,
    version: leafVersion,
  });
}

/** Sorts members by name, as canonical JSON requires. */
function sorted(detail: LogEventDetail): LogEventDetail {
  return Object.fromEntries(Object.entries(detail).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Reads the time from the data of a leaf, Unix seconds. */
export function timeOfLeaf(data: string): number {
  const { time } = JSON.parse(data) as { readonly time: number };
  return time;
}

/** The leaves with indexes from `first` to `last`. */
export interface LeafSpan {
  readonly first: number;
  readonly last: number;
}

/** Writes leaf indexes as sorted ranges, such as `12-15,20`: as few ranges as possible. */
export function leafRanges(indexes: readonly number[]): string {
  const spans: LeafSpan[] = [];
  for (const index of indexes.toSorted((one, other) => one - other)) {
    const previous = spans.at(-1);
    if (previous === undefined || index > previous.last + 1) spans.push({ first: index, last: index });
    else spans[spans.length - 1] = { first: previous.first, last: index };
  }
  return spans.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

/** Parses a text of `leafRanges` with at least one leaf; undefined for any other text. */
export function readLeafRanges(text: string): readonly LeafSpan[] | undefined {
  const spans: LeafSpan[] = [];
  for (const range of text.split(',')) {
    const match = /^(0|[1-9][0-9]*)(?:-([1-9][0-9]*))?$/.exec(range);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = Number(match[2] ?? first);
    const isRange = Number.isSafeInteger(last) && (match[2] === undefined || first < last);
    const isSeparate = first > (spans.at(-1)?.last ?? -2) + 1;
    if (!isRange || !isSeparate) return undefined;
    spans.push({ first, last });
  }
  return spans;
}
