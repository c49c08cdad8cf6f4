import {
  type AuditReport,
  auditLog,
  clockToleranceS,
  type SeenCheckpoint,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { type Attested, attestationOf, readAttested, readWitnesses } from './attested.ts';
import { type FilingRecord, printReport } from './audit-report.ts';
import { readState, stateFileOf, writeState } from './audit-state.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { secondsOf } from './instant.ts';
import { readPin, writePin } from './pin-file.ts';
import { openPublished } from './published.ts';
import { instant, readKeys, tellFailure, verdictCodesHelp } from './verdict.ts';
import { proveFile } from './verify.ts';

/** How often progress is shown, in milliseconds: to somebody who watches, and else as a line each. */
const showEveryMs = 200;
const tellEveryMs = 10_000;

const audit: Action = {
  usage:
    'log audit URL --key VKEY... [--pin FILE] [--full] [--number AS_NUMBER] [--max-age DURATION] [--witness VKEY...] ' +
    '[--witnesses-required N] [--stamped BUNDLE] [--tsa-ca FILE] [--json]',
  details: [
    'URL is the address that the log is published under, such as https://registry.example/log, or a folder with a copy.',
    '--key is a verifier key of the log, got elsewhere; several are given by several --key, or a line each.',
    'Fetches checkpoint, leaves and tiles, and recomputes the tree; no data folder and no settings are read.',
    'Of each year the filing numbers have to be without a gap that no leaf explains, and none may be there twice; what',
    'follows a filing is numbered without gaps, and times never go back, but where the log itself says that they may.',
    'A key signs from the leaf that adds it to the leaf that ends it; a fork of the log ends all keys from before.',
    '--pin names a file that keeps the newest checkpoint that was seen, and is made if it is not there: what contradicts',
    'it is found. FILE.audit beside it keeps how far the audit got: a later one, or one that was interrupted, goes on there.',
    '--full reads all leaves again. --number prints the records of one filing, and reads all leaves for it.',
    '--witness is the key of a witness, got from the witness; --witnesses-required says how many of those given have to',
    'have cosigned the checkpoint, 1 if it is not given. The log publishes no time stamps: --stamped names an evidence',
    'bundle with one, and --tsa-ca a PEM file of certificates that vouch for its authority. The log has to continue both',
    `checkpoints of the bundle. No leaf may be dated more than ${clockToleranceS} s after a cosignature or time stamp that covers it.`,
    '--max-age fails if nothing shows that the checkpoint is from the last 90m, 12h or 7d: neither its newest leaf nor a',
    'cosignature of a given witness nor the time stamp.',
    'Warnings are what contradicts nothing, but is to be asked about: leaves dated in the future, forks that the pin does not',
    'cover, erasures that do not name their leaves, and extension lines of the checkpoint. They do not change the exit code.',
    ...verdictCodesHelp,
    'Here 4 says that leaves and tiles do not belong together, 5 that the log has no record of --number, 7 that the log',
    'contradicts its signature, itself, a witness, the time stamp or the pin, and 8 that the checkpoint is older than --max-age.',
  ],
  run: async (words, terminal) => {
    const isJson = words.has('json');
    const keys = readKeys(words.texts('key'));
    const nowS = Math.floor(Date.now() / 1000);
    const maxAgeS = readMaxAge(words);
    const number = readNumber(words);
    try {
      const { report, attested, records } = await auditFrom(words, { keys, nowS, number }, terminal);
      if (records?.length === 0)
        return tellFailure(
          { kind: 'NOT_INCLUDED', message: `the log has no record of ${number}` },
          isJson,
          terminal,
        );
      const tooOld = maxAgeS === undefined ? undefined : whyTooOld(report, attested, { maxAgeS, nowS });
      if (tooOld !== undefined) return tellFailure({ kind: 'TOO_OLD', message: tooOld }, isJson, terminal);
      printReport({ report, attested, number, records }, isJson, terminal);
    } catch (error) {
      if (error instanceof VerificationFailure) return tellFailure(error, isJson, terminal);
      throw error;
    } finally {
      terminal.showProgress?.('');
    }
    return undefined;
  },
};

/** `artseal log` */
export const log: CommandGroup = {
  summary: 'check all that an evidence log has published: its tree, its numbers, its times',
  actions: [audit],
  details: [],
};

function readMaxAge(words: Words): number | undefined {
  const text = words.text('max-age');
  if (text === undefined) return undefined;
  const seconds = secondsOf(text);
  if (seconds === undefined) throw new UsageError(`takes --max-age as in 90m, 12h or 7d, not '${text}'`);
  return seconds;
}

function readNumber(words: Words): string | undefined {
  const number = words.text('number');
  if (number === undefined || /^AS-\d{4}-\d{6}$/.test(number)) return number;
  throw new UsageError(`takes --number as in AS-2026-000001, not '${number}'`);
}

/** What was audited. */
interface Audited {
  readonly report: AuditReport;
  /** The time stamp, if one was given. */
  readonly attested: Attested | undefined;
  /** Those of the number, if one was given. */
  readonly records: readonly FilingRecord[] | undefined;
}

async function auditFrom(
  words: Words,
  terms: {
    readonly keys: readonly VerifierKey[];
    readonly nowS: number;
    readonly number: string | undefined;
  },
  terminal: Terminal,
): Promise<Audited> {
  const { keys, nowS, number } = terms;
  const log = openPublished(words.required('URL'), 'URL');
  const witnesses = readWitnesses(words);
  const { seen, attested } = await readStamped(words, keys, nowS);
  const pinFile = words.text('pin');
  const pin = pinFile === undefined ? undefined : await readPin(pinFile, keys);
  const stateFile = pinFile && stateFileOf(pinFile);
  const isWhole = stateFile === undefined || words.has('full') || number !== undefined;
  const records: FilingRecord[] = [];
  const report = await auditLog(log, {
    ...{ keys, pin, seen, witnesses, nowS, progress: createProgress(terminal) },
    state: isWhole ? undefined : readState(stateFile),
    onRecord: (leaf, record) => {
      if (record.number === number) records.push({ leaf, ...record });
    },
    keep: (state) => {
      if (stateFile !== undefined) writeState(stateFile, state);
    },
  });
  const isNewer = pin === undefined || report.checkpoint.size > pin.size;
  if (pinFile !== undefined && isNewer) writePin(pinFile, report.checkpoint);
  return { report, attested, records: number === undefined ? undefined : records };
}

/** The checkpoints of the bundle with a time stamp, and the stamp; nothing if none is given. */
async function readStamped(
  words: Words,
  keys: readonly VerifierKey[],
  nowS: number,
): Promise<{ readonly seen: readonly SeenCheckpoint[]; readonly attested: Attested | undefined }> {
  const file = words.text('stamped');
  if ((file === undefined) !== (words.text('tsa-ca') === undefined))
    throw new UsageError('needs --stamped and --tsa-ca together: a time stamp, and who vouches for it');
  if (file === undefined) return { seen: [], attested: undefined };
  const proven = await proveFile(file, { keys });
  const attested = await readAttested(proven, words, nowS);
  const { stamped } = attested;
  const seen: SeenCheckpoint[] = [{ checkpoint: proven.checkpoint, what: 'the bundle' }];
  if (typeof stamped === 'object' && proven.timeStamp !== undefined) {
    const { checkpoint } = proven.timeStamp.proof;
    seen.push({ checkpoint, what: 'the time stamp', attestation: attestationOf(stamped) });
  }
  return { seen, attested };
}

/** Why the checkpoint is too old, or may be; undefined if it is new enough. */
function whyTooOld(
  { checkpoint, contents, cosignatures }: AuditReport,
  attested: Attested | undefined,
  { maxAgeS, nowS }: { readonly maxAgeS: number; readonly nowS: number },
): string | undefined {
  const stamped = attested?.stamped;
  const times = [
    contents.newestS ?? 0,
    ...cosignatures.map(({ timeS }) => timeS),
    typeof stamped === 'object' ? stamped.beforeS : 0,
  ];
  // A time in the future shows nothing.
  const newestS = Math.max(0, ...times.filter((timeS) => timeS <= nowS + clockToleranceS));
  if (nowS - newestS <= maxAgeS) return undefined;
  const since = newestS === 0 ? 'nothing' : `nothing later than ${instant(newestS)}`;
  return `${since} shows how old the checkpoint of ${checkpoint.size} leaves is: the log stood still, or shows an old state of it`;
}

/** Shows how far the audit is on a terminal, and else prints it now and then. */
function createProgress({ showProgress, printError }: Terminal): (done: number, total: number) => void {
  let toldAtMs = performance.now();
  return (done, total) => {
    const atMs = performance.now();
    if (atMs - toldAtMs < (showProgress === undefined ? tellEveryMs : showEveryMs)) return;
    toldAtMs = atMs;
    (showProgress ?? printError)(`${done} of ${total} leaves (${Math.floor((100 * done) / total)} %)`);
  };
}
