import { hash } from 'node:crypto';
import { checkMoney } from './money.ts';
import { ApiError } from './reason.ts';
import { checkText, type TextBounds } from './text.ts';
import type { Violation } from './violation.ts';

/** The six descriptive fields of an artwork, exactly as the caller sent them. */
export interface Artwork {
  readonly author: string;
  readonly era: string;
  readonly size: string;
  readonly material: string;
  readonly condition: string;
  /** Minor units of the settlement currency. */
  readonly price: bigint;
}

/** A filed artwork. It never changes. */
export interface Filing extends Artwork {
  readonly filingNo: string;
  /** Evidence hash, 64 lower-case hex digits. */
  readonly hash: string;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
  /** Name of the caller that filed it. */
  readonly caller: string;
  /** Images and documents of the artwork, in the order of the request. */
  readonly attachments: readonly Attachment[];
}

/** An image or document of an artwork, of which only the digest is filed. */
export interface Attachment {
  /** 1 to 200 code points. */
  readonly name: string;
  /** SHA-256 of the file, 64 lower-case hex digits. */
  readonly sha256: string;
}

/** Attachments of a filing, at most. */
export const attachmentsMax = 20;

/** Bounds of the name of an attachment, in code points. */
const attachmentNameBounds = { min: 1, max: 200 } as const satisfies TextBounds;

/** Bounds of the texts of an artwork, in code points. */
export const artworkTextBounds = {
  author: { min: 1, max: 200 },
  era: { min: 1, max: 200 },
  size: { min: 1, max: 200 },
  material: { min: 1, max: 200 },
  condition: { min: 1, max: 2000 },
} as const satisfies Record<Exclude<keyof Artwork, 'price'>, TextBounds>;

/** The lowest price, in minor units; the highest is moneyMax. */
export const priceMin = 0n;

/** The last number of a year. */
export const filingSequenceMax = 999_999;

/** How long filings and provenance records are kept, in years. */
export const retentionYears = 5;

/** The member `chain` of a filing, in place of the name of a chain. */
export const evidenceChain =
  'Evidence chain under selection: no chain and no judicial-evidence capability is established.';

const artworkTexts = Object.entries(artworkTextBounds) as [keyof typeof artworkTextBounds, TextBounds][];

/** The values that replace those of an erased artwork. */
export const erasedArtwork = {
  ...Object.fromEntries(artworkTexts.map(([field]) => [field, ''])),
  price: 0n,
} as Artwork;

/** Checks an artwork; a missing price is undefined. */
export function checkArtwork(
  artwork: Omit<Artwork, 'price'> & { readonly price?: bigint | undefined },
): Violation[] {
  const violations = artworkTexts.flatMap(([field, bounds]) => checkText(field, artwork[field], bounds));
  return [...violations, ...checkMoney('price', artwork.price, priceMin)];
}

/** Checks attachments. */
export function checkAttachments(attachments: readonly Attachment[]): Violation[] {
  if (attachments.length > attachmentsMax)
    return [{ field: 'attachments', rule: `must be at most ${attachmentsMax}` }];
  return attachments.flatMap(({ name, sha256 }, nth) => [
    ...checkText(`attachments[${nth}].name`, name, attachmentNameBounds),
    ...(/^[0-9a-f]{64}$/.test(sha256)
      ? []
      : [{ field: `attachments[${nth}].sha256`, rule: 'must be 64 lower-case hex digits' }]),
  ]);
}

/** The RFC 8785 canonical JSON of attachments; null if there are none. */
export const canonicalAttachments = (attachments: readonly Attachment[]): string | null =>
  attachments.length === 0 ? null : JSON.stringify(attachments.map(({ name, sha256 }) => ({ name, sha256 })));

const filingNumberPattern = /^AS-[0-9]{4}-[0-9]{6}$/;

/** Checks the form of a filing number. */
export function checkFilingNumber(field: string, value: string): Violation[] {
  return filingNumberPattern.test(value) ? [] : [{ field, rule: 'must be AS-<year>-<6 digits>' }];
}

/** The filing number of a sequence in a year: AS-<year>-<6 digits>. */
export function filingNumber(year: number, sequence: number): string {
  if (sequence > filingSequenceMax) {
    throw new ApiError(
      'FILING_NUMBERS_EXHAUSTED',
      `All ${filingSequenceMax} filing numbers of ${year} are used.`,
    );
  }
  return `AS-${year}-${String(sequence).padStart(6, '0')}`;
}

/** The error for a filing above the cap of its platform in a year, which ends in `endsInS` seconds. */
export function filingCapReached(cap: number, year: number, endsInS: number): ApiError {
  return new ApiError(
    'FILING_CAP_REACHED',
    `All ${cap} filings of ${year} that the operator allows you are used.`,
    {
      retryAfterS: endsInS,
    },
  );
}

/** The year of a filing number. */
export function yearOfFiling(filingNo: string): number {
  return Number(filingNo.slice(3, 7));
}

/** The sequence of a filing number in its year, from 1. */
export function sequenceOfFiling(filingNo: string): number {
  return Number(filingNo.slice(-6));
}

/** The filing number after `last`, the last one of the year if there is one, and after `floor`, up to which numbers are skipped. */
export function nextFilingNumber(year: number, last: string | undefined, floor = 0): string {
  return filingNumber(year, Math.max(last === undefined ? 0 : sequenceOfFiling(last), floor) + 1);
}

/** The members of a filing that the evidence hash covers, sorted as RFC 8785 requires. They never change. */
export const hashedMembers = [
  ...(['author', 'condition', 'era', 'filingNo', 'material', 'price', 'size', 'timestamp'] as const),
] as const satisfies readonly (keyof Filing)[];

/** The members of a filing that the hash leaves out. */
type Unhashed = 'hash' | 'caller' | 'attachments';
type Hashed = (typeof hashedMembers)[number];
/** Fails to compile if a member of Filing is in neither list. */
true satisfies Exclude<keyof Filing, Hashed | Unhashed> extends never ? true : false;

/** The members of a filing that the evidence hash covers. */
export type Evidence = Pick<Filing, Hashed>;

/**
 * The RFC 8785 canonical JSON of the members that the evidence hash covers. For well-formed texts
 * and integers up to 2^53-1, JSON.stringify of members in sorted order is that canonical form.
 */
export function canonicalEvidence(evidence: Evidence): string {
  const members: { [Name in Hashed]?: string | number } = {};
  for (const name of hashedMembers) {
    const value = evidence[name];
    members[name] = typeof value === 'bigint' ? Number(value) : value;
  }
  return JSON.stringify(members);
}

/** The evidence hash: SHA-256, in lower-case hex, over `canonicalEvidence`. */
export function evidenceHash(evidence: Evidence): string {
  return hash('sha256', canonicalEvidence(evidence), 'hex');
}

/** The error for a filing number that names no filing that the caller may see. */
export function filingNotFound(): ApiError {
  return new ApiError('FILING_NOT_FOUND', 'filingNo names no filing.');
}

/** Retry-After while filings are rejected until an operator acts, in seconds. */
const rolledBackRetryAfterS = 60;

/** The error of a filing while the evidence log is known to have been rolled back: its number may be in use already. */
export function filingsHalted(): ApiError {
  return new ApiError(
    'UNAVAILABLE',
    'Nothing can be filed now: the published evidence log shows that the registry went back to an older state. ' +
      'Nothing was stored, and nothing is filed until the operator has resolved this.',
    { retryAfterS: rolledBackRetryAfterS },
  );
}

/** The error for a record that does not exist or that the caller may not see. Sequence 1 is the filing itself. */
export function recordNotFound(sequence: number): ApiError {
  if (sequence === 1) return filingNotFound();
  return new ApiError('FILING_NOT_FOUND', 'filingNo names no filing that has a record with this sequence.');
}

/** The error for an erased filing. */
export function filingErased(): ApiError {
  return new ApiError(
    'FILING_NOT_FOUND',
    `filingNo names a filing that was erased: its retention of ${retentionYears} years is over.`,
  );
}
