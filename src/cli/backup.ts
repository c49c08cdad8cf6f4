import type { Manifest } from '../backup/manifest.ts';
import { takeBackup } from '../backup/take.ts';
import { verifyBackup } from '../backup/verify.ts';
import { readDataDir } from '../config.ts';
import { refuseChangeableByOthers } from '../file-access.ts';
import { databaseFile } from '../store/sqlite/location.ts';
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
    refuseChangeableByOthers([dataDir, databaseFile(dataDir)]);
    const manifest = await withProgress(terminal, (progress) =>
      takeBackup({ dataDir, target, nowMs: Date.now(), progress }),
    );
    for (const line of described(target, manifest)) terminal.print(line);
    return exitCodes.done;
  },
};

const verify: Action = {
  usage: 'backup verify FILE',
  details: [
    'looks at every byte: checksums, the databases, and the evidence hash of every filing. Exit code 1 if one is wrong.',
    'Unpacks it into the temporary folder of the system meanwhile, or into TMPDIR.',
  ],
  run: async (words, terminal) => {
    const file = words.required('FILE');
    const { manifest, faults } = await withProgress(terminal, (progress) => verifyBackup(file, progress));
    for (const fault of faults) terminal.printError(`artseal: ${file}: ${fault}`);
    if (faults.length > 0) return exitCodes.failed;
    for (const line of described(file, manifest)) terminal.print(line);
    terminal.print('sound: all checksums, both directions of every index, and all evidence hashes are right');
    return exitCodes.done;
  },
};

/** `artseal backup` */
export const backup: CommandGroup = {
  summary: 'take a backup of the registry, or verify one',
  bare: take,
  actions: [verify],
  details: ['artseal restore brings one back. tar and sqlite3 open it as well.'],
};

/** What a backup holds, for a person. */
function described(file: string, manifest: Manifest): string[] {
  const { takenAt, database, masterKeys, holdsMasterKeys, artseal } = manifest;
  const { environment, currency, schema, filings, lastFilings, orders, numberGaps } = database;
  const last = Object.values(lastFilings).at(-1);
  const keys = masterKeys.join(', ');
  return [
    `${file}: ${environment}, ${currency ?? 'no currency yet'}, taken ${takenAt} by artseal ${artseal}, schema ${schema}`,
    `${filings} filings${last === undefined ? '' : ` to ${last}`}, ${orders} escrow orders`,
    ...numberGaps.map(
      (gap) => `${gapLine(gap)} (restored ${new Date(gap.restoredAtS * 1000).toISOString()})`,
    ),
    ...(keys === '' ? [] : [holdsMasterKeys ? holding(keys) : lacking(keys)]),
  ];
}

const holding = (keys: string): string =>
  `it holds the sandbox's own master key (its secrets are sealed under: ${keys})`;

const lacking = (keys: string): string =>
  `THE MASTER KEY IS NOT IN IT. Its API secrets open with these alone, kept elsewhere: ${keys}`;
