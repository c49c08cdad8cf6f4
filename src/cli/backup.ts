import { readDataDir } from '../config/config.ts';
import { parseBackupsKept, parsePeriod } from '../config/values.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import type { Manifest } from '../operations/backup/manifest.ts';
import { rotateBackups } from '../operations/backup/rotate.ts';
import { takeBackup } from '../operations/backup/take.ts';
import { verifyBackup } from '../operations/backup/verify.ts';
import { databaseFiles } from '../store/sqlite/location.ts';
import { type Action, type CommandGroup, exitCodes, UsageError } from './command.ts';
import { gapLine } from './gap-line.ts';
import { withProgress } from './progress.ts';

const take: Action = {
  usage: 'backup FILE',
  details: [
    'a tar archive of all that belongs together, with a manifest; the server may run, and is not held up.',
    'FILE must not be there yet: it appears once it is whole and on disk.',
    "The master key of a production is never in it: keep it elsewhere. A sandbox's own one is.",
  ],
  run: async (words, terminal) => {
    const target = words.required('FILE');
    if (target === '-') throw new UsageError('needs a FILE: only one on a disk is known to be whole');
    const dataDir = readDataDir(terminal.env);
    refuseChangeableByOthers(databaseFiles(dataDir));
    const manifest = await withProgress(terminal, (progress) =>
      takeBackup({ dataDir, target, nowMs: Date.now(), progress }),
    );
    for (const line of described(target, manifest)) terminal.print(line);
    return exitCodes.done;
  },
};

const rotate: Action = {
  usage: 'backup rotate --into DIR --keep N [--if-older-than PERIOD] [--json]',
  details: [
    'takes one into a folder, under a name of its own, verifies it, and only then removes the oldest of those that it took before.',
    'If it is damaged, none is removed and the exit code is 1. artseal check and the metrics of the server have the result.',
    '--if-older-than 24h  takes none if the last one is verified and younger, and the last try did not fail.',
    'serve does all this by itself: ARTSEAL_BACKUP_DIR.',
  ],
  run: async (words, terminal) => {
    const everyMs = words.text('if-older-than');
    const order = {
      dataDir: readDataDir(terminal.env),
      folder: words.required('into'),
      keep: read('--keep', words.required('keep'), parseBackupsKept),
      everyMs: everyMs === undefined ? undefined : read('--if-older-than', everyMs, parsePeriod),
      nowMs: Date.now(),
    };
    refuseChangeableByOthers(databaseFiles(order.dataDir));
    const rotated = await withProgress(terminal, (progress) => rotateBackups({ ...order, progress }));
    const { file, isNew, removed, broken } = rotated;
    if (words.has('json')) terminal.print(JSON.stringify(rotated));
    else {
      terminal.print(
        isNew ? `taken and verified: ${file}` : `not taken, for the last one is young enough: ${file}`,
      );
      for (const name of removed) terminal.print(`removed: ${name}`);
      for (const name of broken) terminal.print(`no whole backup, look at it and remove it: ${name}`);
    }
    return exitCodes.done;
  },
};

/** Reads the value of a flag as a setting is read. Throws UsageError. */
function read<Value>(flag: string, text: string, parse: (text: string) => Value): Value {
  try {
    return parse(text);
  } catch (error) {
    throw new UsageError(`${flag} ${error instanceof Error ? error.message : error}, not '${text}'`);
  }
}

const verify: Action = {
  usage: 'backup verify FILE',
  details: [
    'looks at every byte: checksums, the databases, the evidence hash of every filing, and the evidence log with all that it',
    'commits to. Exit code 1 if one is wrong.',
    'Unpacks it into the temporary folder of the system meanwhile, or into TMPDIR.',
  ],
  run: async (words, terminal) => {
    const file = words.required('FILE');
    const { manifest, faults } = await withProgress(terminal, (progress) => verifyBackup(file, progress));
    for (const fault of faults) terminal.printError(`artseal: ${file}: ${fault}`);
    if (faults.length > 0) return exitCodes.failed;
    for (const line of described(file, manifest)) terminal.print(line);
    terminal.print(
      'sound: all checksums, both directions of every index, all evidence hashes, and the evidence log are right',
    );
    if (manifest.formatVersion === 1) terminal.print(withoutChecksum);
    return exitCodes.done;
  },
};

/** `artseal backup` */
export const backup: CommandGroup = {
  summary: 'take a backup of the registry, or verify one',
  bare: take,
  actions: [verify, rotate],
  details: ['artseal restore brings one back. tar and sqlite3 open it as well.'],
};

/** What a backup holds, for a person. */
function described(file: string, manifest: Manifest): string[] {
  const { takenAt, database, masterKeys, holdsMasterKeys, artseal } = manifest;
  const { environment, currency, schema, filings, lastFilings, orders, numberGaps } = database;
  const last = Object.values(lastFilings).at(-1);
  const keys = masterKeys.join(', ');
  return [
    `${file}: ${environment}, ${currency}, taken ${takenAt} by artseal ${artseal}, schema ${schema}`,
    `${filings} filings${last === undefined ? '' : ` to ${last}`}, ${orders} escrow orders`,
    ...numberGaps.map((gap) => `${gapLine(gap)} (restored ${utcTimestamp(gap.restoredAtS * 1000)})`),
    ...(keys === '' ? [] : [holdsMasterKeys ? holding(keys) : lacking(keys)]),
  ];
}

const withoutChecksum =
  'its manifest has no checksum, for an earlier artseal took it: what it says was compared with the files, but that version';

const holding = (keys: string): string =>
  `it holds the sandbox's own master key (its secrets are sealed under: ${keys})`;

const lacking = (keys: string): string =>
  `THE MASTER KEY IS NOT IN IT. Its API secrets open with these alone, kept elsewhere: ${keys}`;
