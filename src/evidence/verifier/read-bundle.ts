import { readLogProof } from '../formats/checkpoint.ts';
import { readBase64, readHex } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';
import { type JsonObject, membersOf, readObject } from './json.ts';
import { readLeaf, readRecord } from './record.ts';

/** Characters of a bundle at most: a record has a few thousand, a checkpoint some hundred. */
export const bundleLengthMax = 1024 * 1024;

const bundleFormat = 'artseal-evidence';
const bundleVersion = 1;

/** An evidence bundle. It is not verified. */
export type Bundle = ReturnType<typeof readBundle>;

/** The statement of a time-stamping authority that a checkpoint with this leaf existed. It is not verified. */
export type TimeStamp = ReturnType<typeof readTimeStamp>;

/** Reads a bundle with exactly its members, each in its only form. Throws VerificationFailure MALFORMED. */
export function readBundle(text: string) {
  if (text.length > bundleLengthMax)
    throw malformed(`the bundle is longer than ${bundleLengthMax} characters`);
  if (!/^[ \t\n\r]*\{/.test(text))
    throw malformed(`this is not an evidence bundle, which begins with {: ${beginningOf(text)}`);
  const required = ['format', 'version', 'record', 'hash', 'salt', 'leaf', 'proof'];
  const object = readObject(text, 'the bundle');
  if (object.get('format') !== bundleFormat)
    throw malformed(`this is not an evidence bundle: its format is not ${bundleFormat}`);
  if (object.get('version') !== bundleVersion) {
    throw malformed(`the bundle is of another version than ${bundleVersion}: use a newer program`);
  }
  const members = membersOf(object, required, 'the bundle', ['timeStamp']);
  const recordText = members.text('record');
  const leafText = members.text('leaf');
  return {
    hash: readHex(members.text('hash'), 32, 'hash'),
    salt: readHex(members.text('salt'), 32, 'salt'),
    proof: readLogProof(members.text('proof'), 'the proof'),
    timeStamp: object.has('timeStamp') ? readTimeStamp(members.object('timeStamp')) : undefined,
    /** The canonical JSON that was hashed, and its members. */
    recordText,
    record: readRecord(recordText),
    /** The data of the leaf, and its members. */
    leafText,
    leaf: readLeaf(leafText, 'the leaf'),
  };
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
