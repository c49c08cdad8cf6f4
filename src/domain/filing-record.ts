import { hash } from 'node:crypto';
import { type Evidence, evidenceHash } from './filing.ts';
import { commitmentTo } from './leaf.ts';
import { fieldError, type Violation } from './violation.ts';

/**
 * The evidence record of a filing, to which its leaf commits. Version 1 is the text of the evidence hash, which discloses everything
 * or nothing. Version 2 has a salted digest of each member, so a bundle can disclose some and hide others, and the caller.
 */

/** The version of the records of new filings. */
export const recordVersion = 2;

/** The members of a filing that a bundle can hide, in the order of their salts. Without attachments the last salt is absent. */
export const hideableMembers = [
  ...(['author', 'condition', 'era', 'material', 'price', 'size'] as const),
  'attachments',
] as const;

/** A member that a bundle can hide. */
export type HideableMember = (typeof hideableMembers)[number];

/** Reads a list of members to disclose, such as `author,era`. Undefined, which means all, stays so. */
export const readDisclose = (disclose: string | undefined): readonly HideableMember[] | undefined =>
  disclose?.split(',') as HideableMember[] | undefined;

/** Checks such a list. */
export function checkDisclose(disclose: string | undefined): Violation[] {
  const names: readonly string[] = readDisclose(disclose) ?? [];
  const isKnown = names.every((name) => (hideableMembers as readonly string[]).includes(name));
  if (isKnown && new Set(names).size === names.length) return [];
  return [{ field: 'disclose', rule: `must name some of ${hideableMembers.join(',')}, each once` }];
}

/** Throws VALIDATION_FAILED unless a record can hide members: that of a filing, of version 2. */
export function requireHideable(filing: Pick<RecordedFiling, 'recordVersion'> | undefined): void {
  if (filing?.recordVersion === recordVersion) return;
  const rule = `must be left out: only a filing with a record of version ${recordVersion} can hide members`;
  throw fieldError('VALIDATION_FAILED', 'disclose', rule);
}

/** Bytes of the salt of a member. */
const memberSaltBytes = 16;

/** Hex digits of the salt of a member. */
const saltDigits = 2 * memberSaltBytes;

/** A filing as its record needs it. */
export interface RecordedFiling extends Evidence {
  /** 1 or 2. */
  readonly recordVersion: number;
  /** The canonical JSON of the attachments; null if there are none. */
  readonly attachments: string | null;
  /** The name of the caller that filed it; null if it is not known. Version 1 has none. */
  readonly caller: string | null;
}

/** The bytes of all salts of a new record. */
export const recordSaltBytes = (attachments: string | null): number =>
  memberSaltBytes * (hideableMembers.length - (attachments === null ? 1 : 0));

/** What a bundle discloses of a member: its salt in hex, and the text that was hashed with it. */
export interface Disclosure {
  readonly salt: string;
  readonly value: string;
}

/** The digest of a member: SHA-256 of the hex digits of its salt and its value, in lower-case hex. */
const digestOf = (salt: string, value: string): string => hash('sha256', salt + value, 'hex');

/** The record of version 2: RFC 8785 canonical JSON. */
export function recordText(filing: RecordedFiling, salt: Buffer): string {
  const { author, condition, era, material, price, size, attachments, caller, filingNo, timestamp } = filing;
  const salts = salt.toString('hex');
  const digest = (nth: number, value: string) =>
    digestOf(salts.slice(nth * saltDigits, (nth + 1) * saltDigits), value);
  const others =
    `"author":"${digest(0, author)}","caller":${JSON.stringify(caller)},"condition":"${digest(1, condition)}",` +
    `"era":"${digest(2, era)}","filingNo":"${filingNo}","material":"${digest(3, material)}",` +
    `"price":"${digest(4, String(price))}","size":"${digest(5, size)}","timestamp":"${timestamp}",` +
    `"version":${recordVersion}}`;
  return attachments === null ? `{${others}` : `{"attachments":"${digest(6, attachments)}",${others}`;
}

/** The salts and values of members of a record of version 2, sorted by name. Attachments are left out if there are none. */
export function disclosuresOf(
  filing: RecordedFiling,
  salt: Uint8Array,
  members: readonly HideableMember[] = hideableMembers,
): Partial<Record<HideableMember, Disclosure>> {
  const salts = Buffer.from(salt).toString('hex');
  const entries = members.toSorted().flatMap((name) => {
    const value = filing[name];
    const from = hideableMembers.indexOf(name) * saltDigits;
    return value === null
      ? []
      : [[name, { salt: salts.slice(from, from + saltDigits), value: String(value) }]];
  });
  return Object.fromEntries(entries);
}

/** The commitment of the leaf of a filing, in lower-case hex. `evidence` is its evidence hash, if that is known. */
export function filingCommitment(filing: RecordedFiling, salt: Buffer, evidence?: string): string {
  // A record of version 1 covers no attachments. With some it was forged, and must not have the commitment of its leaf.
  return filing.recordVersion === 1 && filing.attachments === null
    ? commitmentTo(evidence ?? evidenceHash(filing), salt)
    : hash('sha256', recordText(filing, salt), 'hex');
}
