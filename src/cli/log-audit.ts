import { existsSync, readFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  type AuditReport,
  type AuditState,
  auditLog,
  clockToleranceS,
  instant,
  type LoggedEvent,
  type RecordLeaf,
  type SeenCheckpoint,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { replaceFileSync } from '../lib/replace-file.ts';
import {
  type Action,
  type CommandGroup,
  readDuration,
  type Terminal,
  UsageError,
  type Words,
} from './command.ts';
import { openPublished } from './published.ts';
import {
  type Attested,
  attestationOf,
  attestedAsJson,
  linesOf,
  printFailure,
  readAttested,
  readKeys,
  readPin,
  readWitnesses,
  verdictCodesHelp,
} from './verdict.ts';
import { proveFile } from './verify.ts';

/** How often progress is shown, in milliseconds: on a terminal, and as lines elsewhere. */
const showEveryMs = 200;
const printEveryMs = 10_000;

const audit: Action = {
  usage:
    'log audit URL --key VKEY... [--pin FILE] [--full] [--number AS_NUMBER] [--max-age DURATION] [--witness VKEY...] ' +
    '[--witnesses-required N] [--stamped BUNDLE] [--tsa-ca FILE] [--json]',
  details: [
    'URL is the address of the log, such as https://registry.example/log, or a folder with a copy of its files.',
    '--key is a verifier key of the log, from another source. Repeat --key for several, or give one per line.',
    'Fetches checkpoint, leaves and tiles, and recomputes the tree. No data folder or settings are used.',
    'Filing numbers of a year must not have an unexplained gap or a duplicate, later records of a filing are numbered without',
    'gaps, and times do not decrease, except where a log event allows it.',
    'A key signs from the leaf that adds it to the leaf that ends it; a fork of the log ends all keys from before.',
    '--pin is a file with the newest checkpoint seen before, created if it does not exist. The log has to continue it.',
    'FILE.audit beside it saves how far the audit got: a later audit, or one after an interruption, continues there.',
    '--full reads all leaves again. --number prints the records of one filing, and reads all leaves for it.',
    '--witness is the key of a witness, obtained from the witness; --witnesses-required is how many of the given witnesses have',
    'to have cosigned the checkpoint, 1 by default. The log publishes no time stamps: --stamped is an evidence bundle with one,',
    'and --tsa-ca a PEM file with the certificates of trusted authorities. The log has to continue both checkpoints of the',
    `bundle. No leaf may be dated more than ${clockToleranceS} s after a cosignature or time stamp that covers it.`,
    '--max-age fails unless the newest leaf, a cosignature of a given witness or the time stamp shows that the checkpoint is',
    'from the last 90m, 12h or 7d.',
    'Warnings contradict nothing, but ask the operator about them: leaves dated in the future, forks after the pin, erasures',
    'that do not name their leaves, and extension lines of the checkpoint. They do not change the exit code.',
    ...verdictCodesHelp,
    'Here 4 means that leaves and tiles do not match, 5 that the log has no record of --number, 7 that the log contradicts its',
    'signature, itself, a witness, the time stamp or the pin, and 8 that the checkpoint is older than --max-age.',
  ],
  run: async (words, terminal) => {
    const isJson = words.has('json');
    const nowS = Math.floor(Date.now() / 1000);
    const maxAgeS = readDuration(words, 'max-age', '36500d');
    try {
      const audited = await auditFrom(words, nowS, terminal);
      const tooOld = maxAgeS === undefined ? undefined : whyTooOld(audited, maxAgeS, nowS);
      if (tooOld !== undefined) return printFailure({ kind: 'TOO_OLD', message: tooOld }, isJson, terminal);
      if (isJson) terminal.print(JSON.stringify(asJson(audited)));
      else printLines(audited, terminal);
    } catch (error) {
      if (error instanceof VerificationFailure) return printFailure(error, isJson, terminal);
      throw error;
    } finally {
      terminal.showProgress?.('');
    }
    return undefined;
  },
};

/** `artseal log` */
export const log: CommandGroup = {
  summary: 'audit a published evidence log: its tree, its numbers, its times',
  actions: [audit],
  details: [],
};

function readNumber(words: Words): string | undefined {
  const number = words.text('number');
  if (number === undefined || /^AS-\d{4}-\d{6}$/.test(number)) return number;
  throw new UsageError(`takes --number as in AS-2026-000001, not '${number}'`);
}

interface Audited {
  readonly report: AuditReport;
  /** The cosignatures of the checkpoint, and the time stamp of --stamped. */
  readonly attested: Attested;
  /** The records of --number; undefined without it. */
  readonly records: readonly FilingRecord[] | undefined;
}

/** Audits the log of the command line. Throws UsageError and VerificationFailure. */
async function auditFrom(words: Words, nowS: number, terminal: Terminal): Promise<Audited> {
  const keys = readKeys(words.texts('key'));
  const number = readNumber(words);
  const log = openPublished(words.required('URL'), 'URL');
  const witnesses = readWitnesses(words);
  const { seen, attested } = await readStamped(words, keys, nowS);
  const pinFile = words.text('pin');
  const pin = await readPin(pinFile, keys);
  const stateFile = pinFile && `${pinFile}.audit`;
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
  if (pinFile !== undefined && isNewer) replaceFileSync(pinFile, report.checkpoint.note);
  const { cosignatures } = report;
  const audited = { report, attested: { stamped: undefined, ...attested, cosignatures } };
  if (number === undefined) return { ...audited, records: undefined };
  if (records.length > 0) return { ...audited, records };
  throw new VerificationFailure('NOT_INCLUDED', `the log has no record of ${number}`);
}

/** The version of the format. A state of another version is ignored. */
const formatVersion = 6;

/** Bytes of an uncompressed state at most: enough for decades of filings. */
const stateBytesMax = 512 * 1024 * 1024;

/** Reads the state of an audit; undefined if there is none that can be used. */
function readState(file: string): AuditState | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const bytes = gunzipSync(readFileSync(file), { maxOutputLength: stateBytesMax });
    const { version, state } = deserialize(bytes);
    return version === formatVersion ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the state of an audit. The checksum of gzip finds damage; it does not protect against intent: auditors own their state. */
function writeState(file: string, state: AuditState): void {
  replaceFileSync(file, gzipSync(serialize({ version: formatVersion, state }), { level: 1 }));
}

/** Reads the bundle of --stamped: its checkpoints, and its time stamp. */
async function readStamped(
  words: Words,
  keys: readonly VerifierKey[],
  nowS: number,
): Promise<{ readonly seen: readonly SeenCheckpoint[]; readonly attested: Attested | undefined }> {
  const file = words.text('stamped');
  if ((file === undefined) !== (words.text('tsa-ca') === undefined))
    throw new UsageError('needs --stamped and --tsa-ca together');
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

/** Says why the checkpoint may be older than --max-age; undefined if it is not. */
function whyTooOld(
  { report: { checkpoint, contents }, attested: { stamped, cosignatures } }: Audited,
  maxAgeS: number,
  nowS: number,
): string | undefined {
  const times = [
    contents.newestS ?? 0,
    ...cosignatures.map(({ timeS }) => timeS),
    typeof stamped === 'object' ? stamped.beforeS : 0,
  ];
  // A time in the future proves nothing.
  const newestS = Math.max(0, ...times.filter((timeS) => timeS <= nowS + clockToleranceS));
  if (nowS - newestS <= maxAgeS) return undefined;
  const since = newestS === 0 ? 'nothing' : `nothing later than ${instant(newestS)}`;
  return `${since} shows the age of the checkpoint of ${checkpoint.size} leaves: the log is idle, or this is an old copy of it`;
}

/** Shows the progress on a terminal, and prints a line now and then elsewhere. */
function createProgress({ showProgress, printError }: Terminal): (done: number, total: number) => void {
  let shownAtMs = performance.now();
  return (done, total) => {
    const atMs = performance.now();
    if (atMs - shownAtMs < (showProgress === undefined ? printEveryMs : showEveryMs)) return;
    shownAtMs = atMs;
    (showProgress ?? printError)(`${done} of ${total} leaves (${Math.floor((100 * done) / total)} %)`);
  };
}

/** Log events that are printed of each group; --json prints all. */
const printedMax = 50;

/** Log events that allow exceptions from the rules. They are printed first. */
const allowances: readonly string[] = ['LOG_BEGUN', 'LOG_FORKED', 'CLOCK_ACCEPTED', 'NUMBERS_SKIPPED'];

/** A record of a filing and its leaf index. */
type FilingRecord = RecordLeaf & { readonly leaf: number };

/** The years with filings, in order. */
const yearsOf = ({ contents: { years } }: AuditReport) =>
  Array.from(years, ([year, { filings, last }]) => ({ year, filings, last }))
    .filter(({ filings }) => filings > 0)
    .toSorted((one, other) => one.year - other.year);

function asJson({ report, attested, records }: Audited) {
  const { checkpoint, signers, from, contents, findings } = report;
  const { origin, size } = checkpoint;
  const { transfers, logEvents, newestS } = contents;
  return {
    ...{ verified: true, origin, size, signedBy: signers.map(({ vkey }) => vkey), from },
    ...attestedAsJson(attested),
    ...{ years: yearsOf(report), transfers },
    newest: newestS === undefined ? undefined : instant(newestS),
    warnings: findings,
    logEvents: logEvents.map(({ index, event, timeS, detail }) => ({
      ...{ leaf: index, kind: event, time: instant(timeS), detail: JSON.parse(detail) },
    })),
    records: records?.map(({ leaf, kind, sequence, timeS }) => ({
      ...{ leaf, kind, sequence, time: instant(timeS) },
    })),
  };
}

function printLines({ report, attested, records }: Audited, { print, printError }: Terminal): void {
  const { checkpoint, signers, from, contents, findings } = report;
  const { transfers, logEvents, logEventCount, newestS } = contents;
  const newest = newestS === undefined ? undefined : instant(newestS);
  print(`VERIFIED: the ${checkpoint.size} leaves of the log ${checkpoint.origin} are what it signed`);
  if (from > 0) print(`(an earlier audit verified those before leaf ${from})`);
  for (const { vkey } of signers) print(`signed by ${vkey}`);
  for (const line of linesOf(attested, `the tree of ${attested.stampedLeaves} leaves `)) print(line);
  for (const { year, filings, last } of yearsOf(report)) {
    print(`${year}: ${filings} filings, to number ${last}, ${last - filings} numbers skipped`);
  }
  print(
    `${transfers} later records, ${logEventCount} log events${newest ? `, the newest leaf of ${newest}` : ''}`,
  );
  if (logEventCount > 0) print(`log events: ${countsOf(logEvents)}`);
  const isAllowance = ({ event }: LoggedEvent) => allowances.includes(event);
  const others = logEvents.filter((one) => !isAllowance(one));
  for (const some of [logEvents.filter(isAllowance), others]) {
    if (some.length > printedMax) print(`(the newest ${printedMax} of ${some.length}; --json prints all)`);
    for (const { index, event, timeS, detail } of some.slice(-printedMax)) {
      print(`  leaf ${index}, ${instant(timeS)}: ${event} ${detail}`);
    }
  }
  if (records?.[0] !== undefined) print(`records of ${records[0].number}:`);
  for (const { leaf, kind, sequence, timeS } of records ?? []) {
    print(`  leaf ${leaf}, ${instant(timeS)}: ${kind}, sequence ${sequence}`);
  }
  for (const { what } of findings) printError(`warning: ${what}`);
}

function countsOf(logEvents: readonly LoggedEvent[]): string {
  const kinds = Map.groupBy(logEvents, ({ event }) => event);
  return Array.from(kinds, ([kind, { length }]) => `${length} ${kind}`).join(', ');
}
