import { logSignersOf, readCheckpoint, readVerifierKey, signatureTypes } from '../formats/checkpoint.ts';
import { isSame } from '../formats/encoding.ts';
import { type FailureKind, VerificationFailure } from '../formats/failure.ts';
import { bundleTextOf } from './certificate.ts';
import { type Language, outcomeWords } from './outcome-words.ts';
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

type Words = (typeof outcomeWords)[Language];

/** Most verifier keys that the page accepts. */
const keysMax = 100;

const order = Object.keys(outcomeWords.en.checks) as readonly FailureKind[];

/**
 * Checks a bundle, or a certificate with it, against keys, one a line, and a checkpoint that the user kept, or an empty text.
 */
export function checkBundle(
  bytes: Uint8Array,
  keyLines: string,
  pinText: string,
  language: Language = 'en',
): Outcome {
  const words = outcomeWords[language];
  let trust: Trust;
  let text: string;
  try {
    trust = readTrust(keyLines, pinText);
  } catch (error) {
    return unusable(error, words);
  }
  try {
    text = bundleTextOf(bytes);
  } catch (error) {
    return failed('MALFORMED', messageOf(error), undefined, words);
  }
  const verdict = verifyBundle(text, trust);
  if (!verdict.isProven) return failed(verdict.kind, verdict.what, text, words);
  return succeeded(verdict.proven, trust, text, words);
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
function unusable(error: unknown, words: Words): Outcome {
  const nothing = { checks: [], proven: [], notProven: [], fields: [], record: undefined };
  return { ...nothing, isProven: false, verdict: words.nothingChecked(messageOf(error)) };
}

function failed(kind: FailureKind, what: string, text: string | undefined, words: Words): Outcome {
  const at = order.indexOf(kind);
  const checks = order.map((name, place): Check => {
    const check = words.checks[name];
    if (place < at) return { name: check, state: 'passed', words: words.passed[name] };
    if (place === at) return { name: check, state: 'failed', words: words.failed(what) };
    return { name: check, state: 'open', words: words.earlierFailed };
  });
  const verdict = `${words.notProvenVerdict(what)}${kind === 'FORKED' ? words.keepFiles : ''}`;
  return { isProven: false, verdict, checks, proven: [], notProven: [], ...recordOf(text, words) };
}

function succeeded(proven: Proven, trust: Trust, text: string, words: Words): Outcome {
  const { record, index, timeS, checkpoint, signers, isOfPin, cosignatures, timeStamp } = proven;
  const { size, origin } = checkpoint;
  const { pin } = trust;
  const doubt = doubtOf(proven);
  const silent = trust.keys.filter(
    (key) =>
      key.type === signatureTypes.cosignature &&
      cosignatures.every(({ witness }) => !isSame(witness.publicKey, key.publicKey)),
  );
  const checks = order.map((kind): Check => {
    const name = words.checks[kind];
    if (kind !== 'FORKED' || isOfPin) return { name, state: 'passed', words: words.passed[kind] };
    return { name, state: 'open', words: pin ? words.otherSize(pin.size, size) : words.noPin };
  });
  return {
    isProven: true,
    verdict: words.verdict(nameOf(record, words), origin),
    checks,
    proven: [
      words.isLeaf(index, size, origin, record.number),
      words.addedAt(instant(timeS)),
      words.signedBy(signers.map(({ vkey }) => vkey).join(', ')),
      ...(isOfPin ? [words.isOfPin] : []),
      ...cosignatures.map(({ witness, timeS: seenAtS }) => words.cosigned(witness.name, instant(seenAtS))),
    ],
    notProven: [
      ...(doubt === undefined ? [] : [words.doubt(doubt)]),
      ...(record.hidden.length === 0
        ? []
        : [words.hides(record.hidden.map((name) => words.fields[name] ?? name).join(', '))]),
      ...words.notProven,
      ...silent.map(({ name }) => words.silent(name)),
      ...words.alwaysOpen,
      ...(timeStamp === undefined ? [] : [words.timeStamp]),
    ],
    ...recordOf(text, words),
  };
}

const nameOf = ({ kind, number, sequence }: EvidenceRecord, words: Words): string =>
  kind === 'FILING' ? words.filing(number) : words.later(sequence, kind, number);

/** The record of a bundle, if it can be read. */
function recordOf(
  text: string | undefined,
  { fields: names, notDisclosed }: Words,
): Pick<Outcome, 'fields' | 'record'> {
  try {
    const { record, recordText } = readBundle(text ?? '');
    const known = Object.keys(names).filter((name) => record.members.has(name));
    const members = new Set([...known, ...record.members.keys()]);
    const shown = Array.from(
      members,
      (name) => [names[name] ?? name, visible(String(record.members.get(name)))] as const,
    );
    const hiddenOnes = record.hidden.map((name) => [names[name] ?? name, notDisclosed] as const);
    return { fields: [...shown, ...hiddenOnes], record: visible(recordText) };
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
