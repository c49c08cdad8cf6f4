import { type LogProof, readLogProof } from '../formats/checkpoint.ts';
import { readBase64, readHex } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';
import { type JsonObject, type Members, membersOf, readObject } from './json.ts';
import {
  type Disclosed,
  type EvidenceRecord,
  hashedMembers,
  type Leaf,
  readLeaf,
  readRecord,
  readSaltedRecord,
} from './record.ts';

/** Characters of a bundle at most: a record has a few thousand, a checkpoint some hundred. */
export const bundleLengthMax = 1024 * 1024;

const bundleFormat = 'artseal-evidence';

/** An evidence bundle. It is not verified. */
export interface Bundle extends Committed {
  readonly proof: LogProof;
  readonly timeStamp: TimeStamp | undefined;
  /** The canonical JSON of the record, and its members. */
  readonly recordText: string;
  readonly record: EvidenceRecord;
  /** The data of the leaf, and its members. */
  readonly leafText: string;
  readonly leaf: Leaf;
}

/** What the leaf commits to with the record. */
interface Committed {
  /** Of the record in version 1; the evidence hash in version 2, undefined if a member that it covers is hidden. */
  readonly hash: Uint8Array | undefined;
  /** Version 1 only. */
  readonly salt?: Uint8Array | undefined;
  /** Version 2 only. */
  readonly disclosed?: readonly Disclosed[] | undefined;
}

/** The statement of a time-stamping authority that a checkpoint with this leaf existed. It is not verified. */
export type TimeStamp = ReturnType<typeof readTimeStamp>;

/** Reads a bundle with exactly its members, each in its only form. Throws VerificationFailure MALFORMED. */
export function readBundle(text: string): Bundle {
  if (text.length > bundleLengthMax)
    throw malformed(`the bundle is longer than ${bundleLengthMax} characters`);
  if (!/^[ \t\n\r]*\{/.test(text))
    throw malformed(`this is not an evidence bundle, which begins with {: ${beginningOf(text)}`);
  const object = readObject(text, 'the bundle');
  if (object.get('format') !== bundleFormat)
    throw malformed(`this is not an evidence bundle: its format is not ${bundleFormat}`);
  const version = object.get('version');
  if (version !== 1 && version !== 2)
    throw malformed('the bundle is of another version than 1 and 2: use a newer program');
  const [required, optional] =
    version === 1 ? [['hash', 'salt'], ['timeStamp']] : [['disclosed'], ['hash', 'timeStamp']];
  const all = ['format', 'version', 'record', ...required, 'leaf', 'proof'];
  const members = membersOf(object, all, 'the bundle', optional);
  const leafText = members.text('leaf');
  return {
    ...(version === 1 ? readPlain(members) : readSalted(members, object.has('hash'))),
    proof: readLogProof(members.text('proof'), 'the proof'),
    timeStamp: object.has('timeStamp') ? readTimeStamp(members.object('timeStamp')) : undefined,
    leafText,
    leaf: readLeaf(leafText, 'the leaf'),
  };
}

const readPlain = (members: Members) => ({
  hash: readHex(members.text('hash'), 32, 'hash'),
  salt: readHex(members.text('salt'), 32, 'salt'),
  recordText: members.text('record'),
  record: readRecord(members.text('record')),
});

function readSalted(members: Members, hasHash: boolean) {
  const recordText = members.text('record');
  const { record, disclosed } = readSaltedRecord(recordText, members.object('disclosed'));
  const isWhole = hashedMembers.every((name) => record.members.has(name));
  if (hasHash && !isWhole)
    throw malformed('the bundle has a hash although it hides a member that the hash covers');
  if (!hasHash && isWhole) throw malformed('the bundle lacks hash');
  const hash = hasHash ? readHex(members.text('hash'), 32, 'hash') : undefined;
  return { hash, recordText, record, disclosed };
}

/** Shows how a file begins, so that readers recognize a wrong one, such as the error page of a proxy. */
function beginningOf(text: string): string {
  if (text === '') return 'the file is empty';
  if (text.startsWith('\ufeff')) return 'it begins with a byte order mark, which an editor may have added';
  return `it begins with ${JSON.stringify(text.slice(0, 20))}`;
}

function readTimeStamp(object: JsonObject) {
  const members = membersOf(object, ['proof', 'token'], 'timeStamp');
  return {
    /** The proof that the leaf is in the stamped checkpoint. */
    proof: readLogProof(members.text('proof'), 'the proof of the time stamp'),
    /** DER of an RFC 3161 TimeStampToken over the text of that checkpoint. */
    token: readBase64(members.text('token'), 'the token of the time stamp'),
  };
}
