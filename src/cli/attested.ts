import {
  type Attestation,
  type Cosignature,
  checkDated,
  clockToleranceS,
  hex,
  type Proven,
  signatureTypes,
  VerificationFailure,
  type WitnessPolicy,
} from '../evidence/verifier/index.ts';
import type { Stamped } from '../evidence/verifier/time-stamp.ts';
import { UsageError, type Words } from './command.ts';
import { readBounded } from './files.ts';
import { instant, readKeys } from './verdict.ts';

/** What witnesses and time stamp authorities attest. */
export interface Attested {
  readonly cosignatures: readonly Cosignature[];
  /** Undefined if the bundle has no time stamp; NOT_CHECKED without `--tsa-ca`. */
  readonly stamped: Stamped | 'NOT_CHECKED' | undefined;
  /** Leaves of the stamped checkpoint. */
  readonly stampedLeaves?: number | undefined;
  /** When a certificate of the time stamp ended, Unix seconds; undefined if none has. */
  readonly expiredAtS?: number | undefined;
}

/** The most bytes of a file of certificates. */
const authoritiesBytesMax = 1024 * 1024;

/** Help for these flags. */
export const attestedHelp = [
  '--witness is the key of a witness, received from the witness. Its cosignature proves when it saw the checkpoint.',
  '--witnesses-required is how many of them must have cosigned, by default 1.',
  '--tsa-ca is a PEM file with certificates of time stamp authorities. The bundle must then have a valid time stamp, which',
  'proves by an independent clock that the record was in the log before that time. If a certificate ended after the stamp, the',
  'output says so.',
  `A leaf dated more than ${clockToleranceS} s after a cosignature or time stamp that covers it is rejected.`,
];

/** Reads the witnesses; undefined without `--witness`. Throws UsageError. */
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
      `takes --witnesses-required as a whole number from 0 to ${count}, the number of witnesses`,
    );
  return { keys, required: Number(text) };
}

/** With `--tsa-ca`, checks the time stamp, and that the leaf is not dated after it. Throws VerificationFailure. */
export async function readAttested(
  { cosignatures, timeStamp, timeS }: Proven,
  words: Words,
  nowS: number,
): Promise<Attested> {
  const file = words.text('tsa-ca');
  if (file === undefined) return { cosignatures, stamped: timeStamp && 'NOT_CHECKED' };
  // Loads large libraries only when needed.
  const { readAuthorities, verifyTimeStamp } = await import('../evidence/verifier/time-stamp.ts');
  const pem = Buffer.from(await readBounded(file, authoritiesBytesMax)).toString('latin1');
  const authorities = trusted(() => readAuthorities(pem), file);
  if (timeStamp === undefined)
    throw new VerificationFailure(
      'BAD_SIGNATURE',
      'the bundle has no time stamp: fetch it again later, if the log is stamped',
    );
  const stamped = await verifyTimeStamp(timeStamp, authorities);
  checkDated('the leaf', timeS, [attestationOf(stamped)]);
  const stampedLeaves = timeStamp.proof.checkpoint.size;
  const expiredAtS = stamped.endsAtS < nowS ? stamped.endsAtS : undefined;
  return { cosignatures, stamped, stampedLeaves, expiredAtS };
}

/** The attestation of a time stamp. */
export function attestationOf({ beforeS, authority }: Stamped): Attestation {
  return { by: `the time stamp of ${authority}`, timeS: beforeS };
}

/** Turns faults of the file of certificates into UsageError: they are no fault of the bundle. */
function trusted<T>(read: () => T, file: string): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new UsageError(`cannot use --tsa-ca ${file}: ${error.message}`);
  }
}

/** Describes it; `subject` is what the time stamp covers, if not the record. */
export function linesOf({ cosignatures, stamped, expiredAtS }: Attested, subject = ''): readonly string[] {
  const lines = cosignatures.map(({ witness, timeS }) => `cosigned by ${witness.vkey} at ${instant(timeS)}`);
  if (stamped === undefined) return lines;
  return [
    ...lines,
    stamped === 'NOT_CHECKED'
      ? 'has a time stamp, which was not checked: use --tsa-ca'
      : `${subject}existed before ${instant(stamped.beforeS)} according to ${stamped.authority}`,
    ...(expiredAtS === undefined
      ? []
      : [`note: a certificate of the time stamp ended ${instant(expiredAtS)}, after the stamp was made`]),
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
