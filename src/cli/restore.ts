import { readRestoreConfig } from '../config/config.ts';
import { createCalendar } from '../domain/calendar.ts';
import { checkFilingNumber } from '../domain/filing.ts';
import { restoreBackup } from '../operations/backup/restore.ts';
import { type Command, exitCodes, UsageError } from './command.ts';
import { gapLine } from './gap-line.ts';
import { withProgress } from './progress.ts';

/** `artseal restore` */
export const restore: Command = {
  usage: 'restore FILE --into DIR [--numbers-after FILING_NO]',
  summary: 'make a data folder of a backup',
  details: [
    'DIR must be empty or not there. The backup is verified first. Stop the service that it replaces before you serve DIR.',
    '--numbers-after AS-2026-000123  the last number that was given out, by what platforms and logs know. Without it a gap is',
    '                                left that no service can have filled, but one that was restored from the same backup.',
    'Up to 10,000 more numbers are skipped at random, so that two restored folders hardly ever give out the same ones first.',
    'Serve only one folder that was restored from a backup.',
    'For five minutes after the first start signed calls are refused: the backup cannot tell which were carried out before.',
  ],
  run: async (words, terminal) => {
    const numbersAfter = words.text('numbers-after');
    if (numbersAfter !== undefined && checkFilingNumber('', numbersAfter).length > 0)
      throw new UsageError(`needs --numbers-after AS-<year>-<6 digits>, not '${numbersAfter}'`);
    const { timeZone } = readRestoreConfig(terminal.env);
    const [file, into] = [words.required('FILE'), words.required('into')];
    const { manifest, gaps, isPublished } = await withProgress(terminal, (progress) =>
      restoreBackup({
        ...{ file, into, numbersAfter, progress },
        calendar: createCalendar(timeZone),
        nowMs: Date.now(),
        random: Math.random,
      }),
    );
    const { takenAt, database, masterKeys, holdsMasterKeys } = manifest;
    terminal.print(`restored ${into}: ${database.environment}, as of ${takenAt}`);
    terminal.print(`${database.filings} filings, ${database.orders} escrow orders`);
    for (const gap of gaps) terminal.print(gapLine(gap));
    terminal.print(
      'keys, tokens and suspensions are those of the backup: what was revoked or suspended since then works again',
    );
    if (numbersAfter === undefined)
      terminal.print(
        'If you know the last filing number, or this backup was restored and served before, restore into another folder with --numbers-after.',
      );
    if (!holdsMasterKeys && masterKeys.length > 0)
      terminal.print(`serve needs the master keys ${masterKeys.join(', ')}, which are not in a backup`);
    if (isPublished) for (const line of forkFirst(into)) terminal.print(line);
    terminal.print(`next: stop the service that this replaces, then ARTSEAL_DATA_DIR=${into} artseal serve`);
    return exitCodes.done;
  },
};

/** What the evidence log needs, of which more was published than a backup knows. */
const forkFirst = (into: string): string[] => [
  'the evidence log was published, and serve refuses a registry that may be behind it: when the service that this replaces is',
  `stopped, copy its log-checkpoint into ${into}, if it can still be read; then ARTSEAL_DATA_DIR=${into} artseal evidence fork`,
  'says what is wrong, and with --accept begins a new log that names the last checkpoint',
];
