import {
  type AuditReport,
  auditLog,
  clockToleranceS,
  type SeenCheckpoint,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { secondsOf } from './arguments.ts';
import { type Attested, attestationOf, readAttested, readWitnesses } from './attested.ts';
import { type FilingRecord, printReport } from './audit-report.ts';
import { readState, stateFileOf, writeState } from './audit-state.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { openPublished } from './published.ts';
import { instant, readKeys, readPin, reportFailure, verdictCodesHelp, writePin } from './verdict.ts';
import { proveFile } from './verify.ts';

/** How often progress is shown on a terminal, and printed elsewhere, in milliseconds. */
const showEveryMs = 200;
const printEveryMs = 10_000;

const audit: Action = {
  usage:
    'log audit URL --key VKEY... [--pin FILE] [--full] [--number AS_NUMBER] [--max-age DURATION] [--witness VKEY...] ' +
    '[--witnesses-required N] [--stamped BUNDLE] [--tsa-ca FILE] [--json]',
  details: [
    'URL is the address of the log, such as https://registry.example/log, or a folder with a copy of its files.',
    '--key is a verifier key of the log, not taken from the log. Repeat it for several keys, or give a line for each.',
    'Fetches checkpoint, leaves and tiles, and recomputes the tree. The command reads no data folder and no settings.',
    'Filing numbers of a year must be unique and without gaps that no leaf explains. The records of a filing must be numbered',
    'without gaps, and times must not go back unless the log says that they may.',
    'A key signs from the leaf that adds it to the leaf that ends it. A fork of the log ends all earlier keys.',
    '--pin is a file that keeps the newest verified checkpoint. It is created if missing. The log must continue it. The file',
    'FILE.audit keeps the state of the audit: the next audit continues there.',
    '--full reads all leaves again. --number prints the records of one filing; it reads all leaves.',
    '--witness is the key of a witness, received from the witness. --witnesses-required is how many of them must have',
    'cosigned the checkpoint, by default 1. The log publishes no time stamps: --stamped is an evidence bundle with one, and',
    '--tsa-ca a PEM file with certificates of its authority. The log must continue both checkpoints of the bundle.',
    `No leaf may be dated more than ${clockToleranceS} s after a cosignature or time stamp that covers it.`,
    '--max-age fails if the newest leaf, the cosignatures and the time stamp are all older than 90m, 12h or 7d.',
    'Warnings do not change the exit code: leaves dated in the future, forks that the pin does not cover, erasures that do not',
    'name their leaves, and extension lines of the checkpoint.',
    ...verdictCodesHelp,
    'Here 4 means that leaves and tiles do not match, 5 that the log has no record of --number, 7 that the log contradicts its',
    'signature, itself, a witness, the time stamp or the pin, and 8 that the checkpoint is older than --max-age.',
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
        return reportFailure(
          { kind: 'NOT_INCLUDED', message: `the log has no record of ${number}` },
          isJson,
          terminal,
        );
      const tooOld = maxAgeS === undefined ? undefined : whyTooOld(report, attested, { maxAgeS, nowS });
      if (tooOld !== undefined) return reportFailure({ kind: 'TOO_OLD', message: tooOld }, isJson, terminal);
      printReport({ report, attested, number, records }, isJson, terminal);
    } catch (error) {
      if (error instanceof VerificationFailure) return reportFailure(error, isJson, terminal);
      throw error;
    } finally {
      terminal.showProgress?.('');
    }
    return undefined;
  },
};

/** `artseal log` */
export const log: CommandGroup = {
  summary: 'audit a published evidence log: its tree, numbers and times',
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

/** The result of an audit. */
interface Audited {
  readonly report: AuditReport;
  /** The time stamp; undefined without `--stamped`. */
  readonly attested: Attested | undefined;
  /** The records of `--number`; undefined without it. */
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

/** Reads the bundle of `--stamped`: its checkpoints and its time stamp. */
async function readStamped(
  words: Words,
  keys: readonly VerifierKey[],
  nowS: number,
): Promise<{ readonly seen: readonly SeenCheckpoint[]; readonly attested: Attested | undefined }> {
  const file = words.text('stamped');
  if ((file === undefined) !== (words.text('tsa-ca') === undefined))
    throw new UsageError('needs --stamped and --tsa-ca together: a time stamp and its authority');
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

/** Why the checkpoint is, or may be, too old; undefined if it is new enough. */
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
  // A time in the future proves nothing.
  const newestS = Math.max(0, ...times.filter((timeS) => timeS <= nowS + clockToleranceS));
  if (nowS - newestS <= maxAgeS) return undefined;
  const newest =
    newestS === 0 ? 'nothing proves the age' : `the newest proof of its age is of ${instant(newestS)}`;
  return `the checkpoint of ${checkpoint.size} leaves may be too old: ${newest}: the log stood still, or shows an old state`;
}

/** Shows progress on a terminal, and prints it from time to time elsewhere. */
function createProgress({ showProgress, printError }: Terminal): (done: number, total: number) => void {
  let shownAtMs = performance.now();
  return (done, total) => {
    const atMs = performance.now();
    if (atMs - shownAtMs < (showProgress === undefined ? printEveryMs : showEveryMs)) return;
    shownAtMs = atMs;
    (showProgress ?? printError)(`${done} of ${total} leaves (${Math.floor((100 * done) / total)} %)`);
  };
}
