import { malformed } from '../formats/failure.ts';
import { type JsonObject, membersOf, readCanonical } from './json.ts';
import { filingNumber, type RecordLeaf } from './read-leaf.ts';

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
  readonly members: JsonObject;
}

const filingTexts = ['author', 'condition', 'era', 'filingNo', 'material', 'size', 'timestamp'];
const laterTexts = ['at', 'event', 'filingNo'];

/** Reads the canonical JSON of a record. Throws VerificationFailure MALFORMED. */
export function readRecord(text: string): EvidenceRecord {
  const what = 'the record';
  const members = readCanonical(text, what);
  const isFiling = !members.has('event');
  const texts = isFiling ? filingTexts : laterTexts;
  const read = membersOf(members, [...texts, isFiling ? 'price' : 'sequence'], what);
  for (const name of texts) read.text(name);
  const number = read.text('filingNo');
  if (!filingNumber.test(number)) throw malformed('filingNo of the record is not AS-<year>-<6 digits>');
  if (isFiling) {
    read.integer('price');
    const timeS = readInstant(read.text('timestamp'));
    return { kind: 'FILING', number, sequence: 1, timeS, dayS: undefined, members };
  }
  if (read.text('event') !== 'TRANSFER') throw malformed('the record has an unknown event');
  const dayS = readDate(read.text('at')) / 1000;
  return { kind: 'TRANSFER', number, sequence: read.integer('sequence', 2), timeS: undefined, dayS, members };
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
