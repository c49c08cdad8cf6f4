import { readHex } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';
import {
  type JsonObject,
  type JsonValue,
  type Members,
  membersOf,
  readCanonical,
  readCanonicalList,
} from './json.ts';

/** Reads the data of leaves, which are public, and the records that they commit to. */

const leafVersion = 1;

/** A filing number: AS-<year>-<6 digits>. */
export const filingNumber = /^AS-([0-9]{4})-([0-9]{6})$/;

/** The number that log events have in place of a filing number. */
const logEventNumber = 'LOG';

/** The last second of the year 9999. */
const lastTimeS = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000;

interface AnyLeaf {
  /** Counts the records of the filing, or the log events, from 1. */
  readonly sequence: number;
  /** Unix seconds. */
  readonly timeS: number;
}

/** A record of a filing: a commitment to it, without its content. */
export interface RecordLeaf extends AnyLeaf {
  readonly kind: 'FILING' | 'TRANSFER';
  /** The filing number. */
  readonly number: string;
  /** 64 hex digits in lower case: SHA-256 of the salt and the hash of the record. */
  readonly commitment: string;
}

/** A log event: something that happened to the log itself. */
export interface LogEventLeaf extends AnyLeaf {
  readonly kind: 'LOG_EVENT';
  /** LOG_BEGUN, NUMBERS_SKIPPED and the like. */
  readonly event: string;
  /** Texts and whole numbers by name. */
  readonly detail: JsonObject;
}

/** A leaf of the log. */
export type Leaf = RecordLeaf | LogEventLeaf;

/**
 * The canonical form of the leaves of records. Almost all leaves of a log match, so an audit need not parse them. Others
 * may still be leaves.
 */
const recordLeaf =
  /^\{"commitment":"([0-9a-f]{64})","kind":"(FILING|TRANSFER)","number":"(AS-[0-9]{4}-[0-9]{6})","sequence":([1-9][0-9]{0,14}),"time":(0|[1-9][0-9]{0,14}),"version":1\}$/;

/** Reads the data of a leaf. Throws VerificationFailure MALFORMED. */
export function readLeaf(data: string, what: string): Leaf {
  const [, commitment = '', kind, number = '', sequence, time] = recordLeaf.exec(data) ?? [];
  if (kind === 'FILING' || kind === 'TRANSFER') {
    const leaf = { kind, number, sequence: Number(sequence), timeS: Number(time), commitment } as const;
    return checkRecordLeaf(leaf, what);
  }
  const object = readCanonical(data, what);
  const isRecord = object.has('commitment');
  const members = membersOf(
    object,
    [isRecord ? 'commitment' : 'detail', 'kind', 'number', 'sequence', 'time', 'version'],
    what,
  );
  const version = members.integer('version');
  if (version !== leafVersion) {
    throw malformed(
      `${what} is of version ${version}, and this program knows ${leafVersion}: use a newer one`,
    );
  }
  return isRecord ? readRecordLeaf(members, what) : readLogEvent(members, what);
}

function readRecordLeaf(members: Members, what: string): RecordLeaf {
  const kind = members.text('kind');
  const number = members.text('number');
  const sequence = members.integer('sequence', 1);
  if (kind !== 'FILING' && kind !== 'TRANSFER') throw malformed(`${what} has an unknown kind`);
  if (!filingNumber.test(number)) throw malformed(`the number of ${what} is not AS-<year>-<6 digits>`);
  const commitment = members.text('commitment');
  readHex(commitment, 32, `the commitment of ${what}`);
  return checkRecordLeaf({ kind, number, sequence, timeS: members.integer('time'), commitment }, what);
}

function checkRecordLeaf(leaf: RecordLeaf, what: string): RecordLeaf {
  const { kind, sequence, timeS } = leaf;
  if ((kind === 'FILING') !== (sequence === 1)) {
    throw malformed(
      `${what} is a ${kind} with the sequence ${sequence}: a FILING has 1, later records 2 and up`,
    );
  }
  checkTime(timeS, what);
  return leaf;
}

function checkTime(timeS: number, what: string): number {
  if (timeS > lastTimeS) throw malformed(`the time of ${what} is after the year 9999`);
  return timeS;
}

function readLogEvent(members: Members, what: string): LogEventLeaf {
  const event = members.text('kind');
  if (!/^[A-Z][A-Z_]*$/.test(event) || members.text('number') !== logEventNumber) {
    throw malformed(`${what} is neither a record nor a log event`);
  }
  const detail = members.object('detail');
  for (const value of detail.values()) {
    if (typeof value === 'object') throw malformed(`the detail of ${what} contains an object`);
  }
  return {
    kind: 'LOG_EVENT',
    event,
    sequence: members.integer('sequence', 1),
    timeS: checkTime(members.integer('time'), what),
    detail,
  };
}

/** A record as it was hashed. */
export interface EvidenceRecord {
  readonly kind: RecordLeaf['kind'];
  /** The filing number. */
  readonly number: string;
  readonly sequence: number;
  /** When a filing was filed, Unix seconds; undefined for a later record, which has only a date. */
  readonly timeS: number | undefined;
  /** The date of a later record at midnight UTC, Unix seconds. */
  readonly dayS: number | undefined;
  /** Its members as text; of a record of version 2, also those that the bundle discloses. */
  readonly members: JsonObject;
  /** The members that the bundle hides. */
  readonly hidden: readonly string[];
}

const filingTexts = ['author', 'condition', 'era', 'filingNo', 'material', 'size', 'timestamp'];
const laterTexts = ['at', 'event', 'filingNo'];

/** The members of a filing that the evidence hash covers and a bundle can hide. */
export const hashedMembers = ['author', 'condition', 'era', 'material', 'price', 'size'];

/** Reads the canonical JSON of a record of version 1. Throws VerificationFailure MALFORMED. */
export function readRecord(text: string): EvidenceRecord {
  const what = 'the record';
  const members = readCanonical(text, what);
  const isFiling = !members.has('event');
  const texts = isFiling ? filingTexts : laterTexts;
  const read = membersOf(members, [...texts, isFiling ? 'price' : 'sequence'], what);
  for (const name of texts) read.text(name);
  if (isFiling) {
    read.integer('price');
    return { ...readFiling(read), members, hidden: [] };
  }
  const number = readNumber(read);
  if (read.text('event') !== 'TRANSFER') throw malformed('the record has an unknown event');
  const dayS = readDate(read.text('at')) / 1000;
  const sequence = read.integer('sequence', 2);
  return { kind: 'TRANSFER', number, sequence, timeS: undefined, dayS, members, hidden: [] };
}

const readFiling = (read: Members) => ({
  ...({ kind: 'FILING', number: readNumber(read), sequence: 1, dayS: undefined } as const),
  timeS: readInstant(read.text('timestamp')),
});

function readNumber(read: Members): string {
  const number = read.text('filingNo');
  if (!filingNumber.test(number)) throw malformed('filingNo of the record is not AS-<year>-<6 digits>');
  return number;
}

/** What a bundle discloses of a member. It is not verified. */
export interface Disclosed {
  readonly name: string;
  /** 32 hex digits. */
  readonly salt: string;
  /** The text that was hashed with the salt. */
  readonly value: string;
  /** The digest that the record has of the member. */
  readonly digest: Uint8Array;
}

/**
 * Reads the canonical JSON of a record of version 2, and what a bundle discloses of it. Throws VerificationFailure
 * MALFORMED.
 */
export function readSaltedRecord(
  text: string,
  disclosed: JsonObject,
): { readonly record: EvidenceRecord; readonly disclosed: readonly Disclosed[] } {
  const what = 'the record';
  const object = readCanonical(text, what);
  const clear = ['caller', 'filingNo', 'timestamp', 'version'];
  const read = membersOf(object, [...hashedMembers, ...clear], what, ['attachments']);
  if (read.integer('version') !== 2) throw malformed('the record is of another version than 2');
  const members = new Map<string, JsonValue>([['caller', read.text('caller')]]);
  for (const name of ['filingNo', 'timestamp']) members.set(name, read.text(name));
  const digests = [...object.keys()].filter((name) => !clear.includes(name));
  const given = membersOf(disclosed, [], 'disclosed', digests);
  const all = digests.flatMap((name) => {
    const digest = readHex(read.text(name), 32, `${name} of ${what}`);
    return disclosed.has(name)
      ? [{ name, digest, ...readDisclosed(given.object(name), `disclosed ${name}`) }]
      : [];
  });
  for (const { name, value } of all) {
    if (name === 'attachments') readAttachments(value);
    members.set(name, name === 'price' ? readPrice(value) : value);
  }
  const hidden = digests.filter((name) => !disclosed.has(name));
  return { record: { ...readFiling(read), members, hidden }, disclosed: all };
}

function readDisclosed(object: JsonObject, what: string) {
  const read = membersOf(object, ['salt', 'value'], what);
  const salt = read.text('salt');
  readHex(salt, 16, `the salt of ${what}`);
  return { salt, value: read.text('value') };
}

function readPrice(digits: string): number {
  const price = Number(digits);
  if (/^(0|[1-9][0-9]*)$/.test(digits) && Number.isSafeInteger(price)) return price;
  throw malformed('disclosed price is not a whole number from 0 to 2^53-1 in digits');
}

/** An image or document of a filing. */
interface Attachment {
  readonly name: string;
  /** 64 lower-case hex digits. */
  readonly sha256: string;
}

/** Reads the canonical JSON of attachments, so that no two programs read different ones. Throws VerificationFailure MALFORMED. */
export function readAttachments(text: string): readonly Attachment[] {
  const what = 'disclosed attachments';
  return readCanonicalList(text, what).map((attachment) => {
    const read = membersOf(attachment, ['name', 'sha256'], what);
    const [name, sha256] = [read.text('name'), read.text('sha256')];
    readHex(sha256, 32, `sha256 of ${what}`);
    return { name, sha256 };
  });
}

const instantForm =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)([+-])([01]\d|2[0-3]):([0-5]\d)$/;

/** Reads an RFC 3339 timestamp with whole seconds and a numeric offset. Returns Unix seconds. */
function readInstant(text: string): number {
  const [, year, month, day, hour, minute, second, sign, offsetHours, offsetMinutes] =
    instantForm.exec(text) ?? [];
  if (year === undefined) {
    throw malformed('timestamp of the record is not RFC 3339 with whole seconds and a numeric offset');
  }
  const midnightMs = readDate(`${year}-${month}-${day}`);
  const localS = midnightMs / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  const offsetS = Number(offsetHours) * 3600 + Number(offsetMinutes) * 60;
  return sign === '+' ? localS - offsetS : localS + offsetS;
}

/** Reads a date. Returns its midnight UTC in Unix milliseconds. */
function readDate(text: string): number {
  const date = new Date(`${text}T00:00:00.000Z`);
  // Some engines read the 30th of February as the 2nd of March.
  if (Number.isNaN(date.getTime()) || date.toISOString().slice(0, 10) !== text) {
    throw malformed('the record has a date that does not exist');
  }
  return date.getTime();
}
