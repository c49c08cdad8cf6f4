import { logSignersOf, readCheckpoint, readVerifierKey, signatureTypes } from '../formats/checkpoint.ts';
import { isSame, readUtf8 } from '../formats/encoding.ts';
import { type FailureKind, VerificationFailure } from '../formats/failure.ts';
import { readBundle } from './read-bundle.ts';
import type { EvidenceRecord } from './record.ts';
import { doubtOf, type Proven, type Trust, verifyBundle } from './verify.ts';

/** The result of a check, in sentences for the page. */
export interface Outcome {
  readonly isProven: boolean;
  readonly verdict: string;
  readonly checks: readonly Check[];
  /** Sentences: what is proven, and what readers may wrongly think is proven. Both are empty if the check fails. */
  readonly proven: readonly string[];
  readonly notProven: readonly string[];
  /** Names and values of the record's members. Empty if the record cannot be read. */
  readonly fields: readonly (readonly [string, string])[];
  /** The text that was hashed. Invisible characters are escaped, here and in `fields`. */
  readonly record: string | undefined;
}

/** A step of the check. The steps run in order, until one fails. */
export interface Check {
  readonly name: string;
  readonly state: 'passed' | 'failed' | 'open';
  readonly words: string;
}

/** Most verifier keys that the page accepts. */
const keysMax = 100;

/** The checks in order, by the failure of each. */
const checkNames = {
  MALFORMED: 'Form',
  HASH_MISMATCH: 'Record',
  NOT_INCLUDED: 'Inclusion proof',
  BAD_SIGNATURE: 'Signature of the log',
  FORKED: 'Consistency',
} as const satisfies Record<FailureKind, string>;
const order = Object.keys(checkNames) as readonly FailureKind[];

/** Checks a bundle against keys, one a line, and a checkpoint that the user kept, or an empty text. */
export function checkBundle(bytes: Uint8Array, keyLines: string, pinText: string): Outcome {
  let trust: Trust;
  let text: string;
  try {
    trust = readTrust(keyLines, pinText);
  } catch (error) {
    return unusable(error);
  }
  try {
    text = readUtf8(bytes, 'the file');
  } catch (error) {
    return failed('MALFORMED', messageOf(error), undefined);
  }
  const verdict = verifyBundle(text, trust);
  if (!verdict.isProven) return failed(verdict.kind, verdict.what, text);
  return succeeded(verdict.proven, trust, text);
}

/** What a bundle is checked against. Throws VerificationFailure. */
function readTrust(keyLines: string, pinText: string): Trust {
  const lines = keyLines.split('\n').map((line) => line.trim());
  const vkeys = lines.filter((line) => line !== '');
  if (vkeys.length > keysMax)
    throw new VerificationFailure('MALFORMED', `there are more than ${keysMax} verifier keys`);
  const keys = vkeys.map(readVerifierKey);
  // The page reports each given witness. The reader decides how many are enough.
  const witnesses = { keys, required: 0 };
  if (pinText.trim() === '') return { keys, witnesses };
  const pin = readCheckpoint(`${pinText.trimEnd()}\n`, 'the checkpoint that you kept');
  logSignersOf(pin, keys, 'the checkpoint that you kept');
  return { keys, witnesses, pin };
}

/** The outcome if a key or the kept checkpoint is not valid. */
function unusable(error: unknown): Outcome {
  const nothing = { checks: [], proven: [], notProven: [], fields: [], record: undefined };
  return { ...nothing, isProven: false, verdict: `Nothing was checked: ${messageOf(error)}.` };
}

function failed(kind: FailureKind, what: string, text: string | undefined): Outcome {
  const at = order.indexOf(kind);
  const checks = order.map((name, place): Check => {
    if (place < at) return { name: checkNames[name], state: 'passed', words: passedWords[name] };
    if (place === at) return { name: checkNames[name], state: 'failed', words: `${what}.` };
    return { name: checkNames[name], state: 'open', words: 'an earlier check failed.' };
  });
  const advice = kind === 'FORKED' ? ' Keep all of these files: they are proof against the log.' : '';
  const verdict = `Not proven: ${what}.${advice}`;
  return { isProven: false, verdict, checks, proven: [], notProven: [], ...recordOf(text) };
}

/** The sentence for each check that passed. */
const passedWords: Readonly<Record<FailureKind, string>> = {
  MALFORMED: 'the file is a complete evidence bundle without extra content.',
  HASH_MISMATCH: 'it has the stated hash and members, and the leaf commits to this record, number and time.',
  NOT_INCLUDED: 'the hashes lead from the leaf to the root hash of the log.',
  BAD_SIGNATURE: 'your key signed the checkpoint with that root hash.',
  FORKED: 'the checkpoint that you kept is of the same log.',
};

function succeeded(proven: Proven, trust: Trust, text: string): Outcome {
  const { record, index, timeS, checkpoint, signers, isOfPin, cosignatures, timeStamp } = proven;
  const { pin } = trust;
  const doubt = doubtOf(proven);
  const silent = trust.keys.filter(
    (key) =>
      key.type === signatureTypes.cosignature &&
      cosignatures.every(({ witness }) => !isSame(witness.publicKey, key.publicKey)),
  );
  const checks = order.map((kind): Check => {
    const name = checkNames[kind];
    if (kind !== 'FORKED' || isOfPin) return { name, state: 'passed', words: passedWords[kind] };
    const why = pin
      ? `the pin is of ${pin.size} leaves, this checkpoint of ${checkpoint.size}: only the log itself can prove that one continues the other`
      : 'you gave no earlier checkpoint';
    return { name, state: 'open', words: `${why}.` };
  });
  return {
    isProven: true,
    verdict: `Proven: ${nameOf(record)} is in the log ${checkpoint.origin}.`,
    checks,
    proven: [
      `Exactly the record below is leaf ${index} (counted from 0) of the ${checkpoint.size} leaves of the log ${checkpoint.origin}, under the number ${record.number}.`,
      `The log added it at ${instant(timeS)}, by its own clock. It cannot remove, change or move it without contradicting its signature.`,
      `Signed by the holder of this key: ${signers.map(({ vkey }) => vkey).join(', ')}.`,
      ...(isOfPin ? ['It is the same log as that of the checkpoint that you kept.'] : []),
      ...cosignatures.map(
        ({ witness, timeS: seenAtS }) =>
          `The witness ${witness.name} cosigned the log up to this checkpoint at ${instant(seenAtS)}, and saw no contradiction.`,
      ),
    ],
    notProven: [
      ...(doubt === undefined ? [] : [`Note: ${doubt}.`]),
      ...(record.hidden.length === 0
        ? []
        : [
            `The members that the file hides: ${record.hidden.join(', ')}. It proves that they cannot change.`,
          ]),
      'Who made the work, and whether the record is true: the log keeps what was filed, and nobody checked it.',
      'That the time is right: it is the clock of the log. Only the order of the leaves is proven.',
      'That everybody sees the same log. Keep the checkpoint and have the log audited: two different logs are proof against it.',
      ...silent.map(
        ({ name }) => `That the witness ${name} saw the log up to this checkpoint: it did not cosign.`,
      ),
      'Whose key it is. That depends on where you got it.',
      'Anything in court: this is neither a chain nor judicial evidence.',
      ...(timeStamp === undefined
        ? []
        : ['The time stamp in the bundle: this page does not check it. Use artseal verify.']),
    ],
    ...recordOf(text),
  };
}

function nameOf({ kind, number, sequence }: EvidenceRecord): string {
  return kind === 'FILING' ? `the filing ${number}` : `record ${sequence} (${kind}) of ${number}`;
}

const fieldNames: Readonly<Record<string, string>> = {
  filingNo: 'Filing number',
  timestamp: 'Filed at',
  caller: 'Filed by',
  author: 'Author',
  era: 'Era',
  size: 'Size',
  material: 'Material',
  condition: 'Condition',
  price: 'Price in minor units',
  attachments: 'Attachments',
  event: 'Event',
  at: 'Date',
  sequence: 'Record',
};

/** The record of a bundle, if it can be read. */
function recordOf(text: string | undefined): Pick<Outcome, 'fields' | 'record'> {
  try {
    const { record, recordText } = readBundle(text ?? '');
    const known = Object.keys(fieldNames).filter((name) => record.members.has(name));
    const names = new Set([...known, ...record.members.keys()]);
    const fields = Array.from(
      names,
      (name) => [fieldNames[name] ?? name, visible(String(record.members.get(name)))] as const,
    );
    const hidden = record.hidden.map((name) => [fieldNames[name] ?? name, 'not disclosed'] as const);
    return { fields: [...fields, ...hidden], record: visible(recordText) };
  } catch {
    return { fields: [], record: undefined };
  }
}

/** Zero-width and direction characters, with which one text can look like another. */
const hidden = /[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const visible = (text: string): string =>
  text.replaceAll(hidden, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const instant = (timeS: number): string =>
  new Date(timeS * 1_000).toISOString().replace('.000Z', ' UTC').replace('T', ' ');

const messageOf = (error: unknown): string => {
  if (error instanceof VerificationFailure) return error.message;
  throw error;
};
