import { readHex } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';
import { type JsonObject, type Members, membersOf, readCanonical } from './json.ts';

/** Reads the data of leaves, which are public. */

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
  /** 32 bytes: SHA-256 of the salt and the hash of the record. */
  readonly commitment: Uint8Array;
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
      `${what} is of version ${version}, and this program knows ${leafVersion}: use a newer one`,
    );
  }
  return isRecord ? readRecord(members, what) : readLogEvent(members, what);
}

function readRecord(members: Members, what: string): RecordLeaf {
  const kind = members.text('kind');
  const number = members.text('number');
  const sequence = members.integer('sequence', 1);
  if (kind !== 'FILING' && kind !== 'TRANSFER') throw malformed(`${what} has an unknown kind`);
  if (!filingNumber.test(number)) throw malformed(`the number of ${what} is not AS-<year>-<6 digits>`);
  if ((kind === 'FILING') !== (sequence === 1)) {
    throw malformed(
      `${what} is a ${kind} with the sequence ${sequence}: a FILING has 1, later records 2 and up`,
    );
  }
  const commitment = readHex(members.text('commitment'), 32, `the commitment of ${what}`);
  return { kind, number, sequence, timeS: readTime(members, what), commitment };
}

function readTime(members: Members, what: string): number {
  const timeS = members.integer('time');
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
    timeS: readTime(members, what),
    detail,
  };
}
