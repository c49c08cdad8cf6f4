import { existsSync } from 'node:fs';
import {
  type Attestation,
  type Checkpoint,
  type Cosignature,
  checkDated,
  clockToleranceS,
  type FailureKind,
  hex,
  instant,
  logSignersOf,
  type Proven,
  readCheckpoint,
  readUtf8,
  readVerifierKey,
  signatureTypes,
  VerificationFailure,
  type VerifierKey,
  type WitnessPolicy,
} from '../evidence/verifier/index.ts';
import type { Stamped } from '../evidence/verifier/time-stamp.ts';
import { type Terminal, UsageError, type Words } from './command.ts';
import { readBounded } from './files.ts';

/** A negative result: something does not verify, or the newest checkpoint of a log is too old. */
export interface Failure {
  readonly kind: FailureKind | 'TOO_OLD';
  readonly message: string;
}

/** Exit codes of negative results. 0 is verified, 1 undecided, 2 a wrong command line. */
const verdictCodes: Readonly<Record<Failure['kind'], number>> = {
  MALFORMED: 3,
  HASH_MISMATCH: 4,
  NOT_INCLUDED: 5,
  BAD_SIGNATURE: 6,
  FORKED: 7,
  TOO_OLD: 8,
};

/** The exit codes in the help of a command. */
export const verdictCodesHelp = [
  'Exit codes: 0 verified, 3 malformed, 4 the record is not what was logged, 5 not in the log, 6 no valid signature of a',
  'given key, 7 the log contradicts itself, others or the pin; 1 undecided, 2 the command line is wrong.',
];

/** Prints a negative result. Returns the exit code. */
export function printFailure({ kind, message }: Failure, isJson: boolean, terminal: Terminal): number {
  if (isJson) terminal.print(JSON.stringify({ verified: false, kind, what: message }));
  else terminal.printError(`NOT VERIFIED (${kind}): ${message}`);
  return verdictCodes[kind];
}

/** Reads a value of the command line. Throws UsageError if it cannot be used: that proves nothing against the bundle. */
function usable<T>(flag: string, value: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new UsageError(`cannot use ${flag} ${value}: ${error.message}`);
  }
}

/** Reads the verifier keys of a repeated flag. A value may hold several, one per line. Throws UsageError. */
export function readKeys(values: readonly string[], flag = '--key'): readonly VerifierKey[] {
  const vkeys = values.flatMap((value) => value.trim().split(/\s+/));
  return vkeys.map((vkey) => usable(flag, vkey, () => readVerifierKey(vkey)));
}

/** Bytes of a pin file at most: a checkpoint has some hundred. */
const pinBytesMax = 512 * 1024;

/**
 * Reads the pin, the newest checkpoint seen before; undefined if there is no file. Throws an Error, not a VerificationFailure,
 * if the file cannot be used: a file that was damaged here proves nothing against the log.
 */
export async function readPin(
  file: string | undefined,
  keys: readonly VerifierKey[],
): Promise<Checkpoint | undefined> {
  if (file === undefined || !existsSync(file)) return undefined;
  const bytes = await readBounded(file, pinBytesMax);
  try {
    const pin = readCheckpoint(readUtf8(bytes, 'it'), 'it');
    // The keys of another log are not given.
    if (keys.some(({ name }) => name === pin.origin)) logSignersOf(pin, keys, 'it');
    return pin;
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new Error(
      `the pin file ${file} cannot be used, since ${error.message}: give the --key that signed it, or use a new file`,
    );
  }
}

/** The statements of witnesses and a time-stamping authority. */
export interface Attested {
  readonly cosignatures: readonly Cosignature[];
  /** Undefined if the bundle has no time stamp; NOT_CHECKED without --tsa-ca. */
  readonly stamped: Stamped | 'NOT_CHECKED' | undefined;
  /** The size of the stamped checkpoint. */
  readonly stampedLeaves?: number | undefined;
  /** When a certificate of the time stamp's chain expired, Unix seconds; undefined if none has. */
  readonly expiredAtS?: number | undefined;
}

/** Bytes of a file of certificates at most. */
const authoritiesBytesMax = 1024 * 1024;

/** The help of these flags. */
export const attestedHelp = [
  '--witness is the key of a witness that watches the log, obtained from the witness; its cosignature states when it saw the',
  'checkpoint. --witnesses-required is how many of the given witnesses have to have cosigned, 1 by default.',
  '--tsa-ca is a PEM file with the certificates of trusted time-stamping authorities. The bundle then has to have a time stamp,',
  'which is verified. It shows before what time the record was in the log, by another clock than that of the log.',
  'A certificate that expired after the time of the stamp is accepted, and the output says so.',
  `A leaf that is dated more than ${clockToleranceS} s after a cosignature or time stamp that covers it is rejected.`,
];

/** Reads the witnesses of the command line; undefined if there are none. Throws UsageError. */
export function readWitnesses(words: Words): WitnessPolicy | undefined {
  const keys = readKeys(words.texts('witness'), '--witness');
  const other = keys.find(({ type }) => type !== signatureTypes.cosignature);
  if (other !== undefined)
    throw new UsageError(`cannot use --witness ${other.vkey}: it is a key of a log, not of a witness`);
  const text = words.text('witnesses-required') ?? '1';
  const count = new Set(keys.map(({ publicKey }) => hex(publicKey))).size;
  if (count === 0) {
    if (words.text('witnesses-required') !== undefined)
      throw new UsageError('needs --witness with --witnesses-required');
    return undefined;
  }
  if (!/^\d{1,3}$/.test(text) || Number(text) > count)
    throw new UsageError(
      `needs --witnesses-required as a whole number from 0 to ${count}, the number of given witnesses`,
    );
  return { keys, required: Number(text) };
}

/** Verifies the time stamp if --tsa-ca is given, and that the leaf is not dated after it. Throws VerificationFailure. */
export async function readAttested(
  { cosignatures, timeStamp, timeS }: Proven,
  words: Words,
  nowS: number,
): Promise<Attested> {
  const file = words.text('tsa-ca');
  if (file === undefined) return { cosignatures, stamped: timeStamp && 'NOT_CHECKED' };
  // These libraries are large.
  const { readAuthorities, verifyTimeStamp } = await import('../evidence/verifier/time-stamp.ts');
  const pem = Buffer.from(await readBounded(file, authoritiesBytesMax)).toString('latin1');
  const authorities = usable('--tsa-ca', file, () => readAuthorities(pem));
  if (timeStamp === undefined)
    throw new VerificationFailure(
      'BAD_SIGNATURE',
      'the bundle has no time stamp: a newer bundle of the same record may have one',
    );
  const stamped = await verifyTimeStamp(timeStamp, authorities);
  checkDated('the leaf', timeS, [attestationOf(stamped)]);
  const stampedLeaves = timeStamp.proof.checkpoint.size;
  const expiredAtS = stamped.endsAtS < nowS ? stamped.endsAtS : undefined;
  return { cosignatures, stamped, stampedLeaves, expiredAtS };
}

/** Returns when the tree existed, according to a time stamp. */
export function attestationOf({ beforeS, authority }: Stamped): Attestation {
  return { by: `the time stamp of ${authority}`, timeS: beforeS };
}

/** Prints the statements in lines. `subject` is what the time stamp covers, if not the record. */
export function linesOf({ cosignatures, stamped, expiredAtS }: Attested, subject = ''): readonly string[] {
  const lines = cosignatures.map(({ witness, timeS }) => `cosigned by ${witness.vkey} at ${instant(timeS)}`);
  if (stamped === undefined) return lines;
  return [
    ...lines,
    stamped === 'NOT_CHECKED'
      ? 'has a time stamp, which was not verified: give --tsa-ca'
      : `${subject}existed before ${instant(stamped.beforeS)} according to ${stamped.authority}`,
    ...(expiredAtS === undefined
      ? []
      : [
          `note: the time stamp relies on a certificate that expired ${instant(expiredAtS)}, after the stamp was made`,
        ]),
  ];
}

/** The same as JSON. */
export function attestedAsJson({ cosignatures, stamped, expiredAtS }: Attested) {
  return {
    cosignedBy: cosignatures.map(({ witness, timeS }) => ({ witness: witness.vkey, time: instant(timeS) })),
    ...(stamped && {
      timeStamp:
        stamped === 'NOT_CHECKED'
          ? { isChecked: false }
          : {
              isChecked: true,
              existedBefore: instant(stamped.beforeS),
              authority: stamped.authority,
              ...(expiredAtS !== undefined && { certificateEnded: instant(expiredAtS) }),
            },
    }),
  };
}
