import { readBundle } from '../../src/evidence/verifier/bundle.ts';
import { logSignersOf, readCheckpoint } from '../../src/evidence/verifier/checkpoint.ts';
import { isSame, readUtf8 } from '../../src/evidence/verifier/encoding.ts';
import { type FailureKind, VerificationFailure } from '../../src/evidence/verifier/failure.ts';
import { readVerifierKey, signatureTypes } from '../../src/evidence/verifier/note.ts';
import type { EvidenceRecord } from '../../src/evidence/verifier/record.ts';
import { doubtOf, type Proven, type Trust, verifyBundle } from '../../src/evidence/verifier/verify.ts';

/** What was found about a bundle, in words. */
export interface Outcome {
  readonly isProven: boolean;
  readonly verdict: string;
  readonly checks: readonly Check[];
  /** What is proven, and what is not although it might be thought: sentences. Both are empty where nothing is proven. */
  readonly proven: readonly string[];
  readonly notProven: readonly string[];
  /** What the record says, by the names of its members; empty where it could not be read. */
  readonly fields: readonly (readonly [string, string])[];
  /** The text that was hashed, with what is invisible of it written out, as in `fields`. */
  readonly record: string | undefined;
}

/** One of the things that are looked at, one after the other. */
export interface Check {
  readonly name: string;
  readonly state: 'passed' | 'failed' | 'open';
  readonly words: string;
}

/** The verifier keys that are taken at most. */
const keysMax = 100;

/** The checks in their order, by the failure that each can end in. */
const checkNames = {
  MALFORMED: 'The form',
  HASH_MISMATCH: 'The record',
  NOT_INCLUDED: 'Its place in the log',
  BAD_SIGNATURE: 'The signature of the log',
  FORKED: 'One log, without contradictions',
} as const satisfies Record<FailureKind, string>;
const order = Object.keys(checkNames) as readonly FailureKind[];

/** Checks a bundle against keys, one a line, and the checkpoint that somebody kept, which may be empty. */
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
  // Who gives keys of witnesses is told what they say; how many of them are enough is for the reader to judge.
  const witnesses = { keys, required: 0 };
  if (pinText.trim() === '') return { keys, witnesses };
  const pin = readCheckpoint(`${pinText.trimEnd()}\n`, 'the checkpoint that you kept');
  logSignersOf(pin, keys, 'the checkpoint that you kept');
  return { keys, witnesses, pin };
}

/** The outcome where nothing could be checked, for want of a key or a pin that can be used. */
function unusable(error: unknown): Outcome {
  const nothing = { checks: [], proven: [], notProven: [], fields: [], record: undefined };
  return { ...nothing, isProven: false, verdict: `Nothing was checked: ${messageOf(error)}.` };
}

function failed(kind: FailureKind, what: string, text: string | undefined): Outcome {
  const at = order.indexOf(kind);
  const checks = order.map((name, place): Check => {
    if (place < at) return { name: checkNames[name], state: 'passed', words: passedWords[name] };
    if (place === at) return { name: checkNames[name], state: 'failed', words: `${what}.` };
    return { name: checkNames[name], state: 'open', words: 'what comes before has failed.' };
  });
  const advice = kind === 'FORKED' ? ' Keep all of these files: they are proof against the log.' : '';
  const verdict = `Not proven: ${what}.${advice}`;
  return { isProven: false, verdict, checks, proven: [], notProven: [], ...recordOf(text) };
}

/** What a check has found that has not failed. */
const passedWords: Readonly<Record<FailureKind, string>> = {
  MALFORMED: 'the file is an evidence bundle with all of its parts, and nothing besides.',
  HASH_MISMATCH:
    'it has the hash that is stated, and the entry of the log commits to this record, number and time.',
  NOT_INCLUDED: 'the hashes lead from the entry to the one hash that stands for the whole log.',
  BAD_SIGNATURE: 'that hash is signed by the key that you gave.',
  FORKED: 'the log is the one that you saw then.',
};

function succeeded(proven: Proven, trust: Trust, text: string): Outcome {
  const { record, index, timeS, checkpoint, signers, pin, cosignatures, timeStamp } = proven;
  const isCompared = pin?.isCompared === true;
  const doubt = doubtOf(proven);
  const silent = trust.keys.filter(
    (key) =>
      key.type === signatureTypes.cosignature &&
      cosignatures.every(({ witness }) => !isSame(witness.publicKey, key.publicKey)),
  );
  const checks = order.map((kind): Check => {
    const name = checkNames[kind];
    if (kind !== 'FORKED' || isCompared) return { name, state: 'passed', words: passedWords[kind] };
    const why = pin?.isCompared === false ? pin.why : 'you gave no checkpoint that you kept';
    return { name, state: 'open', words: `${why}.` };
  });
  return {
    isProven: true,
    verdict: `Proven: ${nameOf(record)} is in the log ${checkpoint.origin}.`,
    checks,
    proven: [
      `The record below, to the last character, is entry ${index} (counted from 0) of the ${checkpoint.size} entries of the log ${checkpoint.origin}, under the number ${record.number}.`,
      `The log entered it at ${instant(timeS)}, by its own clock, and cannot take it out, change it or move it without contradicting what it signed.`,
      `The holder of this key signed for it: ${signers.map(({ vkey }) => vkey).join(', ')}.`,
      ...(isCompared ? ['It is the same log as that of the checkpoint that you kept.'] : []),
      ...cosignatures.map(
        ({ witness, timeS: seenAtS }) =>
          `The witness ${witness.name} had seen the log up to there by ${instant(seenAtS)}, and nothing that contradicts it.`,
      ),
    ],
    notProven: [
      ...(doubt === undefined ? [] : [`Mind: ${doubt}.`]),
      'Who made the work, and whether what the record says of it is true: the log keeps what was filed, and nobody checked that.',
      'That the time is right: it is what the clock of the log said. What is proven is the order of the entries.',
      'That everybody is shown the same log. Keep the checkpoint, and have the log audited: two logs that differ are then proof against it.',
      ...silent.map(({ name }) => `That the witness ${name} has seen the log up to there: it did not sign.`),
      'Whose key that is: you got it from somebody.',
      'It is neither a chain nor judicial evidence.',
      ...(timeStamp === undefined
        ? []
        : [
            'The time stamp of an authority that the bundle bears: this page does not look at it, artseal verify does.',
          ]),
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
  author: 'Author',
  era: 'Era',
  size: 'Size',
  material: 'Material',
  condition: 'Condition',
  price: 'Price in minor units',
  event: 'Event',
  at: 'Date',
  sequence: 'Record',
};

/** The record of a bundle as far as it can be read. */
function recordOf(text: string | undefined): Pick<Outcome, 'fields' | 'record'> {
  try {
    const { record, recordText } = readBundle(text ?? '');
    const names = Object.keys(fieldNames).filter((name) => record.members.has(name));
    const fields = names.map(
      (name) => [fieldNames[name] ?? name, visible(String(record.members.get(name)))] as const,
    );
    return { fields, record: visible(recordText) };
  } catch {
    return { fields: [], record: undefined };
  }
}

/** Spaces without width, and what turns the direction of texts around: with them a text can look like another one. */
const hidden = /[\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const visible = (text: string): string =>
  text.replaceAll(hidden, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const instant = (timeS: number): string =>
  new Date(timeS * 1_000).toISOString().replace('.000Z', ' UTC').replace('T', ' ');

const messageOf = (error: unknown): string => {
  if (error instanceof VerificationFailure) return error.message;
  throw error;
};
