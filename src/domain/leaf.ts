import { hash } from 'node:crypto';
import type { ProvenanceEvent } from './provenance.ts';

/**
 * The leaves of the evidence log. Their data are public for ever, so they tell nothing of a work or a person: what a record
 * says is committed to, under a salt that is kept beside it. Whoever has record and salt can show that they are those; once
 * the salt is erased nobody can find out what was recorded, and every proof is valid as before.
 */

/** The version of what leaves and bundles are made of. */
export const leafVersion = 1;

/** Bytes of a salt. */
export const saltBytes = 32;

/** A record of a filing that is a leaf. */
export interface RecordLeaf {
  /** FILING for the filing itself, which is its source record as well. */
  readonly kind: 'FILING' | Exclude<ProvenanceEvent, 'SUBMITTED'>;
  /** The filing number. */
  readonly number: string;
  /** The place of the record among those of the filing, from 1, which is the filing itself. */
  readonly sequence: number;
  /** When it was recorded, Unix seconds. */
  readonly timeS: number;
  /** 64 lower-case hex digits: see `commitmentTo`. */
  readonly commitment: string;
}

/**
 * What happened to the log itself and is public as it is:
 * - LOG_BEGUN: how many records of before it were taken up (`adopted`): the leaves before this one, in whatever order of times.
 * - LOG_FORKED: the log goes on under another origin, since the database was not what had been published: the last
 *   checkpoint of the old one (`previous`: its note), and the new origin.
 * - KEY_ADDED, KEY_RETIRED: a verifier key (`vkey`) that signs from now on or later (`from`: Unix seconds), or signs no more.
 * - NUMBERS_SKIPPED: filing numbers that are left out for good (`year`, `after`, `through`).
 * - CLOCK_ACCEPTED: a time that an operator said is right although it is behind the newest record, or far ahead (`timeS`).
 * - RECORDS_ERASED: records whose retention is over and whose texts and salts are gone: how many (`records`), their leaves
 *   (`leaves`: see `leafRanges`), and the latest time that those can have (`before`: Unix seconds).
 */
export type LogEventKind =
  | 'LOG_BEGUN'
  | 'LOG_FORKED'
  | 'KEY_ADDED'
  | 'KEY_RETIRED'
  | 'NUMBERS_SKIPPED'
  | 'CLOCK_ACCEPTED'
  | 'RECORDS_ERASED';

/** Something that happened to the log itself. */
export interface LogEventLeaf {
  readonly kind: LogEventKind;
  /** Its place among those of the log, from 1. */
  readonly sequence: number;
  readonly timeS: number;
  /** Its members by names of Latin letters: texts and safe integers. */
  readonly detail: LogEventDetail;
}

/** What is told of an act of the log. */
export type LogEventDetail = Readonly<Record<string, string | number>>;

/** The number that acts of the log bear in the place of a filing number. */
const actNumber = 'LOG';

/** What a record is committed to with: SHA-256 of its salt and of its evidence hash, both as bytes; lower-case hex. */
export function commitmentTo(evidenceHash: string, salt: Uint8Array): string {
  return hash('sha256', Buffer.concat([salt, Buffer.from(evidenceHash, 'hex')]), 'hex');
}

/** The data of the leaf of a record: RFC 8785 canonical JSON. None of its texts has a character that JSON escapes. */
export function recordLeafData({ kind, number, sequence, timeS, commitment }: RecordLeaf): string {
  return (
    `{"commitment":"${commitment}","kind":"${kind}","number":"${number}","sequence":${sequence},` +
    `"time":${timeS},"version":${leafVersion}}`
  );
}

/** The data of the leaf of an act: RFC 8785 canonical JSON. */
export function actLeafData({ kind, sequence, timeS, detail }: LogEventLeaf): string {
  return JSON.stringify({
    detail: sorted(detail),
    kind,
    number: actNumber,
    sequence,
    time: timeS,
    version: leafVersion,
  });
}

/** Members in the order of their names, as canonical JSON has them. */
function sorted(detail: LogEventDetail): LogEventDetail {
  return Object.fromEntries(Object.entries(detail).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** The time that the data of a leaf tell, Unix seconds. */
export function timeOfLeaf(data: string): number {
  const { time } = JSON.parse(data) as { readonly time: number };
  return time;
}

/** Leaves whose indexes follow one another: `first` to `last`. */
export interface LeafSpan {
  readonly first: number;
  readonly last: number;
}

/**
 * Writes leaf indexes as sorted ranges, such as `12-15,20`: a hyphen between the ends of a range of two or more, and as few
 * ranges as possible.
 */
export function leafRanges(indexes: readonly number[]): string {
  const spans: LeafSpan[] = [];
  for (const index of indexes.toSorted((one, other) => one - other)) {
    const previous = spans.at(-1);
    if (previous === undefined || index > previous.last + 1) spans.push({ first: index, last: index });
    else spans[spans.length - 1] = { first: previous.first, last: index };
  }
  return spans.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

/** Reads the text of `leafRanges`; undefined if it is another text than `leafRanges` writes for at least one leaf. */
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
