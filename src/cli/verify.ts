import {
  bundleLengthMax,
  bundleTextOf,
  type Checkpoint,
  checkContinued,
  doubtOf,
  instant,
  type JsonValue,
  logSignersOf,
  malformed,
  type Proven,
  prove,
  readBundle,
  readCheckpoint,
  type Trust,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { replaceFileSync } from '../lib/replace-file.ts';
import { type Command, type Terminal, UsageError, type Words } from './command.ts';
import { readBounded } from './files.ts';
import { openPublished } from './published.ts';
import {
  type Attested,
  attestedAsJson,
  attestedHelp,
  linesOf,
  printFailure,
  readAttested,
  readKeys,
  readPin,
  readWitnesses,
  verdictCodesHelp,
} from './verdict.ts';

/** Bytes of a bundle at most: a character takes up to four. */
const bundleBytesMax = 4 * bundleLengthMax;

/** `artseal verify` */
export const verify: Command = {
  usage:
    'verify BUNDLE --key VKEY... [--log URL|FOLDER] [--pin FILE] [--witness VKEY...] [--witnesses-required N] ' +
    '[--tsa-ca FILE] [--json]',
  summary: 'verify evidence without trusting its source',
  details: [
    'BUNDLE is the file, a certificate (PDF) with it, or - for standard input. No data folder, settings or network are used.',
    '--key is a verifier key of the log, from another source than the bundle. Repeat --key for several, or give one per line.',
    '--log is the address of the log, or a folder with a copy of its files. Its newest checkpoint has to continue the tree of the',
    'bundle. This finds a log that shows different trees to different people, or removed an entry.',
    '--pin is a file with the newest checkpoint of a bundle seen before, created if it does not exist. The log has to continue',
    'that one too, so --pin needs --log.',
    ...attestedHelp,
    ...verdictCodesHelp,
  ],
  run: async (words, terminal) => {
    const keys = readKeys(words.texts('key'));
    const witnesses = readWitnesses(words);
    if (words.text('pin') !== undefined && words.text('log') === undefined)
      throw new UsageError('needs --log with --pin: only the log can prove that it continues the pin');
    try {
      const proven = await proveFile(words.required('BUNDLE'), { keys, witnesses });
      const attested = await readAttested(proven, words, Math.floor(Date.now() / 1000));
      const compared = await compareWithLog(words, keys, proven.checkpoint);
      printProven(proven, attested, compared, words, terminal);
    } catch (error) {
      if (error instanceof VerificationFailure) return printFailure(error, words.has('json'), terminal);
      throw error;
    }
    return undefined;
  },
};

/** Verifies the bundle in a file, or on standard input for `-`. Throws VerificationFailure. */
export async function proveFile(file: string, trust: Trust): Promise<Proven> {
  const tooLong = malformed(`the bundle is longer than ${bundleBytesMax} bytes`);
  const bytes = await readBounded(file, bundleBytesMax, tooLong);
  return prove(readBundle(bundleTextOf(bytes)), trust);
}

/** The comparison with the log and the pin. */
interface Compared {
  /** The size of the newest checkpoint of the log. */
  readonly size: number;
  /** FIRST: created; MOVED: replaced by the checkpoint of the bundle; KEPT: unchanged. Undefined without --pin. */
  readonly pin: 'FIRST' | 'MOVED' | 'KEPT' | undefined;
}

/** Verifies that the log continues the checkpoint of the bundle and the pin, and moves the pin if it is older. */
async function compareWithLog(
  words: Words,
  keys: readonly VerifierKey[],
  checkpoint: Checkpoint,
): Promise<Compared | undefined> {
  const [place, file] = [words.text('log'), words.text('pin')];
  if (place === undefined) return undefined;
  const pin = await readPin(file, keys);
  const size = await continuedSize(place, keys, checkpoint, pin);
  if (file === undefined) return { size, pin: undefined };
  if (pin !== undefined && pin.size >= checkpoint.size) return { size, pin: 'KEPT' };
  replaceFileSync(file, checkpoint.note);
  return { size, pin: pin === undefined ? 'FIRST' : 'MOVED' };
}

/** Returns the size of a log that continues the checkpoint of the bundle and the pin. */
async function continuedSize(
  place: string,
  keys: readonly VerifierKey[],
  checkpoint: Checkpoint,
  pin: Checkpoint | undefined,
): Promise<number> {
  const log = openPublished(place, '--log');
  try {
    const newest = readCheckpoint(await log.checkpoint(), 'the checkpoint of the log');
    logSignersOf(newest, keys, 'the checkpoint of the log');
    if (pin !== undefined) await checkContinued(log, newest, pin, 'the pin');
    await checkContinued(log, newest, checkpoint, 'the bundle');
    return newest.size;
  } catch (cause) {
    // A file that the log lacks proves nothing against the bundle.
    if (!(cause instanceof VerificationFailure) || cause.kind !== 'MALFORMED') throw cause;
    throw new Error('the bundle itself is valid, but the log could not prove that it continues it', {
      cause,
    });
  }
}

function printProven(
  proven: Proven,
  attested: Attested,
  compared: Compared | undefined,
  words: Words,
  { print, printError }: Terminal,
): void {
  const { record, checkpoint, signers } = proven;
  if (words.has('json')) {
    print(JSON.stringify({ ...asJson(proven, compared, words.text('pin')), ...attestedAsJson(attested) }));
    return;
  }
  const subject =
    record.kind === 'FILING' ? 'the filing' : `record ${record.sequence} (${record.kind}) of the filing`;
  print(`VERIFIED: ${subject} ${record.number} is in the log, which dates it ${instant(proven.timeS)}`);
  for (const [name, value] of record.members) print(`  ${name.padEnd(10)} ${onOneLine(value)}`);
  if (record.hidden.length > 0) print(`  hidden     ${record.hidden.join(', ')}`);
  const doubt = doubtOf(proven);
  if (doubt !== undefined) printError(`warning: ${doubt}`);
  print(`log ${checkpoint.origin}: leaf ${proven.index} of ${checkpoint.size}`);
  for (const { vkey } of signers) print(`signed by ${vkey}`);
  for (const line of linesOf(attested)) print(line);
  if (compared === undefined) return;
  print(`the log continues it, and has ${compared.size} leaves now`);
  if (compared.pin !== undefined) print(pinLines[compared.pin]);
}

const pinLines = {
  FIRST: 'pinned as the first checkpoint',
  MOVED: 'agrees with the pin, and replaces it',
  KEPT: 'agrees with the pin',
} as const;

/** Escapes a value that could imitate further lines of the output. */
function onOneLine(value: JsonValue): string {
  return /\p{Cc}/u.test(String(value)) ? JSON.stringify(value) : String(value);
}

function asJson(
  { record, hash, timeS, index, checkpoint, signers }: Proven,
  compared: Compared | undefined,
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
    ...(record.hidden.length > 0 && { hidden: record.hidden }),
    log: {
      origin: checkpoint.origin,
      leaf: index,
      size: checkpoint.size,
      signedBy: signers.map(({ vkey }) => vkey),
    },
    ...(compared && { logSize: compared.size }),
    ...(compared?.pin && {
      pin: { file, isMoved: compared.pin !== 'KEPT', isCompared: compared.pin !== 'FIRST' },
    }),
  };
}
