import {
  bundleLengthMax,
  type Checkpoint,
  compareWithPin,
  consistencyPath,
  doubtOf,
  type JsonValue,
  malformed,
  type PinComparison,
  type Proven,
  prove,
  readBundle,
  readUtf8,
  type Trust,
  VerificationFailure,
  type VerifierKey,
} from '../verifier/index.ts';
import {
  type Attested,
  attestedAsJson,
  attestedHelp,
  linesOf,
  readAttested,
  readWitnesses,
} from './attested.ts';
import { type Command, type Terminal, UsageError, type Words } from './command.ts';
import { readBounded } from './files.ts';
import { readPin, writePin } from './pin-file.ts';
import { openPublished } from './published.ts';
import { instant, readKeys, tellFailure, verdictCodesHelp } from './verdict.ts';

/** Bytes of a bundle: a character takes up to four. */
const bundleBytesMax = 4 * bundleLengthMax;

/** `artseal verify` */
export const verify: Command = {
  usage:
    'verify BUNDLE --key VKEY... [--pin FILE] [--log URL|FOLDER] [--witness VKEY...] [--witnesses-required N] ' +
    '[--tsa-ca FILE] [--json]',
  summary: 'check evidence that somebody handed over, without trusting who made it',
  details: [
    'BUNDLE is the file, or - for standard input. Nothing else is read: no data folder, no settings, no network.',
    '--key is a verifier key of the log, got elsewhere than the bundle; several are given by several --key, or a line each.',
    '--pin names a file that keeps the newest checkpoint that was seen, and is made if it is not there. What contradicts it',
    'is found: a log that shows different people different trees, or took something back. Between trees of different',
    'sizes only the log can prove that one continues the other: --log has it fetched, or read from a folder with the files',
    'of the log. Without it a tree of another size is not compared with the pin, which the output says; the pin stays.',
    ...attestedHelp,
    ...verdictCodesHelp,
  ],
  run: async (words, terminal) => {
    const keys = readKeys(words.texts('key'));
    const witnesses = readWitnesses(words);
    if (words.text('log') !== undefined && words.text('pin') === undefined)
      throw new UsageError('needs --pin, to which the log of --log is to prove itself');
    try {
      const proven = await proveFile(words.required('BUNDLE'), { keys, witnesses });
      const attested = await readAttested(proven, words);
      const pin = await pinned(words, keys, proven.checkpoint);
      tell(proven, attested, pin, words, terminal);
    } catch (error) {
      if (error instanceof VerificationFailure) return tellFailure(error, words.has('json'), terminal);
      throw error;
    }
    return undefined;
  },
};

async function proveFile(file: string, trust: Trust): Promise<Proven> {
  const bytes = await readBounded(file, bundleBytesMax);
  if (bytes.length > bundleBytesMax) throw malformed(`the bundle is longer than ${bundleBytesMax} bytes`);
  return prove(readBundle(readUtf8(bytes, 'the bundle')), trust);
}

/** What became of the pin: how the checkpoint stands to it, unless it is the first, and whether it is the pin now. */
interface Pinned {
  readonly comparison: PinComparison | undefined;
  readonly isMoved: boolean;
}

/** Compares a checkpoint with the pin, if there is one, and makes it the pin if it is newer. */
async function pinned(
  words: Words,
  keys: readonly VerifierKey[],
  checkpoint: Checkpoint,
): Promise<Pinned | undefined> {
  const file = words.text('pin');
  if (file === undefined) return undefined;
  const pin = await readPin(file, keys);
  const comparison = pin && (await compare(pin, checkpoint, words.text('log')));
  const isMoved = comparison === undefined || (comparison.isCompared && comparison.isNewer);
  if (isMoved) writePin(file, checkpoint);
  return { comparison, isMoved };
}

async function compare(
  pin: Checkpoint,
  checkpoint: Checkpoint,
  log: string | undefined,
): Promise<PinComparison> {
  const isOtherSize = pin.origin === checkpoint.origin && pin.size !== checkpoint.size;
  if (log === undefined || !isOtherSize) return compareWithPin(pin, checkpoint);
  const sizes = [pin.size, checkpoint.size] as const;
  const path = await pathFrom(log, Math.min(...sizes), Math.max(...sizes));
  return compareWithPin(pin, checkpoint, path);
}

/** What the log has to prove it with; that it has none is no fault of the bundle. */
async function pathFrom(log: string, older: number, newer: number): Promise<readonly Uint8Array[]> {
  try {
    return await consistencyPath(openPublished(log, '--log'), older, newer);
  } catch (cause) {
    if (!(cause instanceof VerificationFailure)) throw cause;
    throw new Error('the bundle itself is good, but the log could not prove its agreement with the pin', {
      cause,
    });
  }
}

function tell(
  proven: Proven,
  attested: Attested,
  pin: Pinned | undefined,
  words: Words,
  { print, printError }: Terminal,
): void {
  const { record, checkpoint, signers } = proven;
  const uncompared = pin?.comparison?.isCompared === false ? pin.comparison.why : undefined;
  if (words.has('json')) {
    print(JSON.stringify({ ...asJson(proven, pin, words.text('pin')), ...attestedAsJson(attested) }));
    return;
  }
  const subject =
    record.kind === 'FILING' ? 'the filing' : `record ${record.sequence} (${record.kind}) of the filing`;
  print(
    `VERIFIED: ${subject} ${record.number} is in the log, dated ${instant(proven.timeS)} by it, as follows`,
  );
  for (const [name, value] of record.members) print(`  ${name.padEnd(10)} ${onOneLine(value)}`);
  const doubt = doubtOf(proven);
  if (doubt !== undefined) printError(`mind: ${doubt}`);
  print(`log ${checkpoint.origin}: leaf ${proven.index} of ${checkpoint.size}`);
  for (const { vkey } of signers) print(`signed by ${vkey}`);
  for (const line of linesOf(attested)) print(line);
  if (pin === undefined) return;
  if (uncompared !== undefined) {
    printError(`not compared with the pin: ${uncompared} (--log has it fetched)`);
  } else {
    print(pin.comparison === undefined ? 'pinned as the first checkpoint that was seen' : agreement(pin));
  }
}

/** A value that cannot pass for further lines of what is printed here. */
function onOneLine(value: JsonValue): string {
  return /\p{Cc}/u.test(String(value)) ? JSON.stringify(value) : String(value);
}

function agreement({ isMoved }: Pinned): string {
  return `agrees with the pin${isMoved ? ', and is the pin now' : ''}`;
}

function asJson(
  { record, hash, timeS, index, checkpoint, signers }: Proven,
  pin: Pinned | undefined,
  file?: string,
) {
  return {
    verified: true,
    kind: record.kind,
    number: record.number,
    sequence: record.sequence,
    time: instant(timeS),
    doubt: doubtOf({ record, timeS }),
    hash,
    record: Object.fromEntries(record.members),
    log: {
      origin: checkpoint.origin,
      leaf: index,
      size: checkpoint.size,
      signedBy: signers.map(({ vkey }) => vkey),
    },
    ...(pin && {
      pin: {
        file,
        isMoved: pin.isMoved,
        ...(pin.comparison && { isCompared: pin.comparison.isCompared }),
        ...(pin.comparison?.isCompared === false && { why: pin.comparison.why }),
      },
    }),
  };
}
