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

/** What others than the log attest to, as far as it was asked for. */
export interface Attested {
  readonly cosignatures: readonly Cosignature[];
  /** Undefined if the bundle bears no time stamp; NOT_CHECKED if nobody is trusted for it. */
  readonly stamped: Stamped | 'NOT_CHECKED' | undefined;
  /** How many leaves the stamped checkpoint has. */
  readonly stampedLeaves?: number | undefined;
  /** When a certificate ended that the time stamp relies on, Unix seconds; undefined if none has ended. */
  readonly expiredAtS?: number | undefined;
}

/** Bytes of a file of certificates. */
const authoritiesBytesMax = 1024 * 1024;

/** What the help says of these words. */
export const attestedHelp = [
  '--witness is the key of a witness that watches the log, got from the witness; its cosignature tells when it saw the',
  'checkpoint. --witnesses-required says how many of those given have to have cosigned, 1 if it is not given.',
  '--tsa-ca names a PEM file of certificates that vouch for authorities for time stamps: the one in the bundle is then',
  'required, and checked. It tells before what time the record was in the log, by another clock than that of the log.',
  'A certificate that ended after the time of the stamp is accepted, and the output says so.',
  `A leaf that is dated more than ${clockToleranceS} s after a cosignature or time stamp that covers it is refused.`,
];

/** The witnesses of the command line; undefined if there are none. Throws UsageError. */
export function readWitnesses(words: Words): WitnessPolicy | undefined {
  const keys = readKeys(words.texts('witness'), '--witness');
  const other = keys.find(({ type }) => type !== signatureTypes.cosignature);
  if (other !== undefined)
    throw new UsageError(`cannot use --witness ${other.vkey}: it is a key of a log, not of a witness`);
  const text = words.text('witnesses-required') ?? '1';
  const count = new Set(keys.map(({ publicKey }) => hex(publicKey))).size;
  if (count === 0) {
    if (words.text('witnesses-required') !== undefined)
      throw new UsageError('needs --witness, of whom to require it');
    return undefined;
  }
  if (!/^\d{1,3}$/.test(text) || Number(text) > count)
    throw new UsageError(
      `needs a whole number from 0 to ${count}, the witnesses given, behind --witnesses-required`,
    );
  return { keys, required: Number(text) };
}

/**
 * Checks the time stamp of what is proven so far, if there is somebody to trust for it, and that the leaf is not dated after it.
 * Throws VerificationFailure.
 */
export async function readAttested(
  { cosignatures, timeStamp, timeS }: Proven,
  words: Words,
  nowS: number,
): Promise<Attested> {
  const file = words.text('tsa-ca');
  if (file === undefined) return { cosignatures, stamped: timeStamp && 'NOT_CHECKED' };
  // The libraries for it are only loaded where it is asked for.
  const { readAuthorities, verifyTimeStamp } = await import('../evidence/verifier/time-stamp.ts');
  const pem = Buffer.from(await readBounded(file, authoritiesBytesMax)).toString('latin1');
  const authorities = trusted(() => readAuthorities(pem), file);
  if (timeStamp === undefined)
    throw new VerificationFailure(
      'BAD_SIGNATURE',
      'the bundle bears no time stamp: a newer one of the same record may, if the log is stamped',
    );
  const stamped = await verifyTimeStamp(timeStamp, authorities);
  checkDated('the leaf', timeS, [attestationOf(stamped)]);
  const stampedLeaves = timeStamp.proof.checkpoint.size;
  const expiredAtS = stamped.endsAtS < nowS ? stamped.endsAtS : undefined;
  return { cosignatures, stamped, stampedLeaves, expiredAtS };
}

/** What a time stamp says of when the tree was there. */
export function attestationOf({ beforeS, authority }: Stamped): Attestation {
  return { by: `the time stamp of ${authority}`, timeS: beforeS };
}

/** What is wrong with the file of those who are trusted says nothing of the bundle. */
function trusted<T>(read: () => T, file: string): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new UsageError(`cannot use --tsa-ca ${file}: ${error.message}`);
  }
}

/** The lines that say it; `subject` is what the time stamp is of, if not of the record. */
export function linesOf({ cosignatures, stamped, expiredAtS }: Attested, subject = ''): readonly string[] {
  const lines = cosignatures.map(({ witness, timeS }) => `cosigned by ${witness.vkey} at ${instant(timeS)}`);
  if (stamped === undefined) return lines;
  return [
    ...lines,
    stamped === 'NOT_CHECKED'
      ? 'bears a time stamp, which was not checked: --tsa-ca says who is trusted for it'
      : `${subject}existed before ${instant(stamped.beforeS)} according to ${stamped.authority}`,
    ...(expiredAtS === undefined
      ? []
      : [
          `note: the time stamp relies on a certificate that ended ${instant(expiredAtS)}, after the stamp was made`,
        ]),
  ];
}

/** The same for programs. */
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
