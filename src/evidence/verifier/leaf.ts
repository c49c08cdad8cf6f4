import { readHex, readUtf8, utf8 } from './encoding.ts';
import { malformed } from './failure.ts';
import { type JsonObject, type Members, membersOf, readCanonical } from './json.ts';

/** The data of leaves: what of a log is public. */

/** The version of leaves that is known here. */
const leafVersion = 1;

/** The most bytes of a leaf: length-prefixed in two bytes where leaves are published. */
export const leafBytesMax = 65_535;

/** What the number of a record is: AS-<year>-<6 digits>. */
export const filingNumber = /^AS-([0-9]{4})-([0-9]{6})$/;

/** The number that acts of the log bear in place of a filing number. */
const actNumber = 'LOG';

/** The last second that a date has four digits of a year for. */
const lastTimeS = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000;

interface AnyLeaf {
  /** The place among the records of the filing, or among the acts of the log, from 1. */
  readonly sequence: number;
  /** Unix seconds. */
  readonly timeS: number;
}

/** A record of a filing: nothing of what it says, but a commitment to it. */
export interface RecordLeaf extends AnyLeaf {
  readonly kind: 'FILING' | 'TRANSFER';
  /** The filing number. */
  readonly number: string;
  /** 32 bytes: SHA-256 of the salt and the hash of the record. */
  readonly commitment: Uint8Array;
}

/** Something that happened to the log itself, in public. */
export interface LogEventLeaf extends AnyLeaf {
  readonly kind: 'ACT';
  /** LOG_BEGUN, NUMBERS_SKIPPED and the like. */
  readonly act: string;
  /** Texts and whole numbers by their names. */
  readonly detail: JsonObject;
}

/** A leaf of the log. */
export type Leaf = RecordLeaf | LogEventLeaf;

/** The bytes of the data of a leaf. */
export const leafBytes: (data: string) => Uint8Array = utf8;

/** Reads the data of a leaf as they are published. Throws VerificationFailure MALFORMED. */
export function readLeafBytes(bytes: Uint8Array, what: string): Leaf {
  return readLeaf(readUtf8(bytes, what), what);
}

/** Reads the data of a leaf. Throws VerificationFailure MALFORMED. */
export function readLeaf(data: string, what: string): Leaf {
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
      `${what} is of version ${version}: this program knows ${leafVersion}, a newer one may know it`,
    );
  }
  return isRecord ? readRecord(members, what) : readLogEvent(members, what);
}

function readRecord(members: Members, what: string): RecordLeaf {
  const kind = members.text('kind');
  const number = members.text('number');
  const sequence = members.integer('sequence', 1);
  if (kind !== 'FILING' && kind !== 'TRANSFER')
    throw malformed(`${what} is of a kind of records that is not known`);
  if (!filingNumber.test(number)) throw malformed(`the number of ${what} is not AS-<year>-<6 digits>`);
  if ((kind === 'FILING') !== (sequence === 1)) {
    throw malformed(
      `${what} is a ${kind} with the sequence ${sequence}: a FILING has 1, what follows it 2 and up`,
    );
  }
  const commitment = readHex(members.text('commitment'), 32, `the commitment of ${what}`);
  return { kind, number, sequence, timeS: readTime(members, what), commitment };
}

function readTime(members: Members, what: string): number {
  const timeS = members.integer('time');
  if (timeS > lastTimeS) throw malformed(`the time of ${what} is behind the year 9999`);
  return timeS;
}

function readLogEvent(members: Members, what: string): LogEventLeaf {
  const act = members.text('kind');
  if (!/^[A-Z][A-Z_]*$/.test(act) || members.text('number') !== actNumber) {
    throw malformed(`${what} is neither a record nor an act of the log`);
  }
  const detail = members.object('detail');
  for (const value of detail.values()) {
    if (typeof value === 'object') throw malformed(`the detail of ${what} has an object in it`);
  }
  return {
    kind: 'ACT',
    act,
    sequence: members.integer('sequence', 1),
    timeS: readTime(members, what),
    detail,
  };
}
