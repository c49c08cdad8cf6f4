import { readDataDir, readTimeZone } from '../config/config.ts';
import { parseBackupPeriod, parseBackupsKept } from '../config/values.ts';
import type { BackupFacts, BackupVerdict } from '../domain/backup.ts';
import { createCalendar } from '../domain/calendar.ts';
import { checkFilingNumber, filingNumber } from '../domain/filing.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import { factsOfBackup, type Progress } from '../operations/backup/manifest.ts';
import { restoreBackup } from '../operations/backup/restore.ts';
import { rotateBackups } from '../operations/backup/rotate.ts';
import { takeBackup } from '../operations/backup/take.ts';
import { verifyBackup } from '../operations/backup/verify.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import { databaseFiles } from '../store/sqlite/location.ts';
import type { NumberGap } from '../store/sqlite/restorations.ts';
import {
  type Action,
  type Command,
  type CommandGroup,
  exitCodes,
  readFlag,
  readRequired,
  show,
  type Terminal,
  UsageError,
  type Words,
} from './command.ts';

const take: Action = {
  usage: 'backup FILE [--json] [--progress]',
  details: [
    'Takes a backup: a tar archive with a manifest. The server may run and is not blocked.',
    'FILE must not exist. It appears when it is complete and on disk.',
    'The master key of a production is never in a backup: keep it elsewhere. That of a sandbox is.',
    '--progress  prints JSON lines {"progress":{"step":…,"done":…,"total":…}} before the result; done and total are bytes.',
  ],
  run: async (words, terminal) => {
    const target = words.required('FILE');
    if (target === '-') throw new UsageError('needs a FILE on a disk, not standard output');
    const dataDir = readDataDir(terminal.env);
    refuseChangeableByOthers(databaseFiles(dataDir));
    const manifest = await withProgress(words, terminal, (progress) =>
      takeBackup({ dataDir, target, nowMs: Date.now(), progress }),
    );
    const facts = factsOfBackup(target, manifest);
    show(words, terminal, facts, ...described(facts));
  },
};

const rotate: Action = {
  usage: 'backup rotate --into DIR --keep N [--if-older-than PERIOD] [--json] [--progress]',
  details: [
    'Takes a backup into a folder, verifies it, and then removes the oldest of its earlier backups, except the newest N.',
    'If the new backup is damaged, it removes none and exits with 1. artseal check and the metrics report the result.',
    '--if-older-than 24h  takes none if the last attempt succeeded and its backup is younger.',
    'serve does the same regularly if ARTSEAL_BACKUP_DIR is set.',
  ],
  run: async (words, terminal) => {
    const order = {
      dataDir: readDataDir(terminal.env),
      folder: words.required('into'),
      keep: readRequired(words, 'keep', parseBackupsKept),
      everyMs: readFlag(words, 'if-older-than', parseBackupPeriod),
      nowMs: Date.now(),
    };
    refuseChangeableByOthers(databaseFiles(order.dataDir));
    const rotated = await withProgress(words, terminal, (progress) => rotateBackups({ ...order, progress }));
    const { file, isNew, removed, broken } = rotated;
    show(
      ...([words, terminal, rotated] as const),
      isNew ? `taken and verified: ${file}` : `not taken: the last one is young enough: ${file}`,
      ...removed.map((name) => `removed: ${name}`),
      ...broken.map((name) => `incomplete backup, look at it and remove it: ${name}`),
    );
  },
};

const verify: Action = {
  usage: 'backup verify FILE [--json] [--progress]',
  details: [
    'Checks every byte: checksums, databases, the evidence hash of every filing, and the evidence log with its records.',
    'Exit code 1 if something is wrong. Unpacks the backup into TMPDIR meanwhile.',
  ],
  run: async (words, terminal) => {
    const file = words.required('FILE');
    const { manifest, faults } = await withProgress(words, terminal, (progress) =>
      verifyBackup(file, progress),
    );
    return showVerdict(words, terminal, { backup: factsOfBackup(file, manifest), faults });
  },
};

function showVerdict(words: Words, terminal: Terminal, verdict: BackupVerdict): number {
  const { backup, faults } = verdict;
  if (words.has('json')) terminal.print(JSON.stringify(verdict));
  else if (faults.length > 0)
    for (const fault of faults) terminal.printError(`artseal: ${backup.file}: ${fault}`);
  else for (const line of [...described(backup), sound]) terminal.print(line);
  return faults.length > 0 ? exitCodes.failed : exitCodes.done;
}

const sound = 'sound: checksums, indexes, evidence hashes and the evidence log are right';

/** `artseal backup` */
export const backup: CommandGroup = {
  summary: 'take, rotate and verify backups',
  bare: take,
  actions: [verify, rotate],
  details: ['artseal restore restores a backup. tar and sqlite3 can read it, too.'],
};

/** `artseal restore` */
export const restore: Command = {
  usage: 'restore FILE --into DIR [--numbers-after FILING_NO]',
  summary: 'restore a backup into an empty folder',
  details: [
    'DIR must be empty or missing. The backup is verified first. Stop the server that you replace before you serve DIR.',
    '--numbers-after AS-2026-000123  is the last filing number that was given out, as platforms and logs know it. Without it the',
    '                                new numbers begin after a gap that no service can have filled.',
    'Up to 10,000 more numbers are skipped at random, so that two restored folders hardly ever give out the same numbers. Still,',
    'serve only one folder restored from a backup.',
    'For five minutes after the first start, signed calls are rejected: the backup does not have the latest nonces.',
  ],
  run: async (words, terminal) => {
    const { print } = terminal;
    const numbersAfter = words.text('numbers-after');
    if (numbersAfter !== undefined && checkFilingNumber('', numbersAfter).length > 0)
      throw new UsageError(`needs --numbers-after AS-<year>-<6 digits>, not '${numbersAfter}'`);
    const calendar = createCalendar(readTimeZone(terminal.env));
    const [file, into] = [words.required('FILE'), words.required('into')];
    const { manifest, gaps, isPublished } = await withProgress(words, terminal, (progress) =>
      restoreBackup({
        ...{ file, into, numbersAfter, progress, calendar, nowMs: Date.now(), random: Math.random },
      }),
    );
    const { takenAt, database, masterKeys, holdsMasterKeys } = manifest;
    print(`restored ${into}: ${database.environment}, as of ${takenAt}`);
    print(`${database.filings} filings, ${database.orders} escrow orders`);
    for (const gap of gaps) print(gapLine(gap));
    print(
      'keys, tokens and suspensions are those of the backup: revoke and suspend again what was changed since',
    );
    if (numbersAfter === undefined)
      print(
        'If you know the last filing number, or served another folder restored from this backup, restore again with --numbers-after.',
      );
    if (!holdsMasterKeys && masterKeys.length > 0)
      print(`serve needs the master keys ${masterKeys.join(', ')}, which are not in a backup`);
    if (isPublished) for (const line of forkFirst(into)) print(line);
    print(`next: stop the server that you replace, then run ARTSEAL_DATA_DIR=${into} artseal serve`);
  },
};

/** What to do about an evidence log that may have been published further than the backup. */
const forkFirst = (into: string): string[] => [
  'the evidence log was published, and serve rejects a registry that lacks published leaves: stop the server that you replace,',
  `copy its log-checkpoint into ${into} if it is readable, then run ARTSEAL_DATA_DIR=${into} artseal evidence fork: it says`,
  'what is wrong, and with --accept begins a new log that names the last checkpoint',
];

/** Describes a backup. */
function described(facts: BackupFacts): string[] {
  const { file, environment, currency, takenAt, artseal, schema } = facts;
  const { filings, lastFilingNo, orders, numberGaps, masterKeys, holdsMasterKeys } = facts;
  const keys = masterKeys.join(', ');
  return [
    `${file}: ${environment}, ${currency}, taken ${takenAt} by artseal ${artseal}, schema ${schema}`,
    `${filings} filings${lastFilingNo === undefined ? '' : ` to ${lastFilingNo}`}, ${orders} escrow orders`,
    ...numberGaps.map((gap) => `${gapLine(gap)} (restored ${gap.restoredAt})`),
    ...(keys === '' ? [] : [holdsMasterKeys ? holding(keys) : lacking(keys)]),
  ];
}

const holding = (keys: string): string =>
  `it contains the master key of the sandbox (its secrets are sealed under: ${keys})`;

const lacking = (keys: string): string =>
  `THE MASTER KEY IS NOT IN IT. Its secrets open only with these, which you must keep elsewhere: ${keys}`;

/** Describes skipped numbers. */
function gapLine({ kind, year, after, through }: NumberGap): string {
  return kind === 'FILING'
    ? `skipped: ${filingNumber(year, after + 1)} to ${filingNumber(year, through)}`
    : `skipped: ${through - after} escrow ids of ${year}`;
}

/** How often progress is shown at most, in milliseconds. */
const showEveryMs = 100;
/** Signals of the terminal and of supervisors that end a command. */
const signals = ['SIGINT', 'SIGTERM'] as const;

/** Runs work and shows its progress. SIGINT and SIGTERM make the next report of progress throw, so that the work cleans up. */
async function withProgress<T>(
  words: Words,
  { print, showProgress }: Terminal,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  let stoppedBy: string | undefined;
  let shownAtMs = Number.NEGATIVE_INFINITY;
  const stop = (signal: string) => {
    stoppedBy = signal;
  };
  for (const signal of signals) process.on(signal, stop);
  try {
    return await work((step, done, total) => {
      if (stoppedBy !== undefined) throw new Error(`stopped by ${stoppedBy}; unfinished files are removed`);
      const atMs = performance.now();
      if (atMs - shownAtMs < showEveryMs) return;
      shownAtMs = atMs;
      if (words.has('progress')) print(JSON.stringify({ progress: { step, done, total } }));
      else showProgress?.(total === 0 ? step : `${step}: ${megabytes(done)} of ${megabytes(total)}`);
    });
  } finally {
    showProgress?.('');
    for (const signal of signals) process.off(signal, stop);
  }
}
