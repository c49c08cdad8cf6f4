import { type LogProof, readLogProof } from './checkpoint.ts';
import { readBase64, readHex } from './encoding.ts';
import { malformed } from './failure.ts';
import { membersOf, readObject } from './json.ts';
import { type Leaf, readLeaf } from './leaf.ts';
import { type EvidenceRecord, readRecord } from './record.ts';

/** The most characters of a bundle: a record has a few thousand, a checkpoint some hundred. */
export const bundleLengthMax = 1024 * 1024;

const bundleFormat = 'artseal-evidence';
const bundleVersion = 1;

/** What a holder of evidence has in hand, read and not checked yet. */
export interface Bundle {
  /** The canonical JSON that was hashed, and what it says. */
  readonly recordText: string;
  readonly record: EvidenceRecord;
  /** 32 bytes each. */
  readonly hash: Uint8Array;
  readonly salt: Uint8Array;
  /** The data of the leaf, and what they say. */
  readonly leafText: string;
  readonly leaf: Leaf;
  readonly proof: LogProof;
  readonly timeStamp: TimeStamp | undefined;
}

/** That a checkpoint with this leaf was there at a time, said by a time-stamping authority. */
export interface TimeStamp {
  /** That the leaf is in the checkpoint that bears the stamp. */
  readonly proof: LogProof;
  /** DER of an RFC 3161 TimeStampToken over the text of that checkpoint. */
  readonly token: Uint8Array;
}

/** Reads a bundle: every part in the one form that it may have, nothing missing and nothing besides. Throws VerificationFailure MALFORMED. */
export function readBundle(text: string): Bundle {
  if (text.length > bundleLengthMax)
    throw malformed(`the bundle is longer than ${bundleLengthMax} characters`);
  if (!/^[ \t\n\r]*\{/.test(text))
    throw malformed(`this is no evidence bundle, which begins with {: ${beginningOf(text)}`);
  const required = ['format', 'version', 'record', 'hash', 'salt', 'leaf', 'proof'];
  const object = readObject(text, 'the bundle');
  if (object.get('format') !== bundleFormat)
    throw malformed(`this is no evidence bundle: its format is not ${bundleFormat}`);
  if (object.get('version') !== bundleVersion) {
    throw malformed(`the bundle is of another version than ${bundleVersion}: a newer program may know it`);
  }
  const members = membersOf(object, required, 'the bundle', ['timeStamp']);
  const recordText = members.text('record');
  const leafText = members.text('leaf');
  return {
    hash: readHex(members.text('hash'), 32, 'hash'),
    salt: readHex(members.text('salt'), 32, 'salt'),
    proof: readLogProof(members.text('proof'), 'the proof'),
    timeStamp: object.has('timeStamp') ? readTimeStamp(members.object('timeStamp')) : undefined,
    recordText,
    record: readRecord(recordText),
    leafText,
    leaf: readLeaf(leafText, 'the leaf'),
  };
}

/** What somebody needs to see that a file is another one than they thought, such as the page of a proxy. */
function beginningOf(text: string): string {
  if (text === '') return 'the file is empty';
  if (text.startsWith('\ufeff')) return 'it begins with a byte order mark, which an editor may have added';
  return `it begins with ${JSON.stringify(text.slice(0, 20))}`;
}

function readTimeStamp(object: Parameters<typeof membersOf>[0]): TimeStamp {
  const members = membersOf(object, ['proof', 'token'], 'timeStamp');
  return {
    proof: readLogProof(members.text('proof'), 'the proof of the time stamp'),
    token: readBase64(members.text('token'), 'the token of the time stamp'),
  };
}
