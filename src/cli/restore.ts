import { resolve } from 'node:path';
import { BackupSchema } from '../../gen/artseal/v1/backup_pb.ts';
import { writeMessage } from '../api/message-json.ts';
import { readConfig, readTimeZone, settings, usesPostgres } from '../config/config.ts';
import { refuse } from '../config/settings.ts';
import { createCalendar } from '../domain/calendar.ts';
import { checkFilingNumber } from '../domain/filing.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { postgresBackups } from '../operations/backup/manifest.ts';
import { restoreBackup } from '../operations/backup/restore.ts';
import { recordRestored } from '../operations/backup/years-since.ts';
import { factsOfBackup, gapLine } from './backup-facts.ts';
import {
  type Action,
  type Command,
  type CommandGroup,
  readInstant,
  UsageError,
  type Words,
} from './command.ts';
import { withProgress } from './progress.ts';

/** The help of `--numbers-after`. */
const numbersAfterHelp: readonly string[] = [
  '--numbers-after AS-2026-000123  is the last filing number that was given out, as platforms and logs know it. Without it the',
  '                                new numbers begin after a gap that no service can have filled.',
];

/** Reads the last filing number that was given out; undefined without the flag. Throws UsageError. */
function readNumbersAfter(words: Words): string | undefined {
  const numbersAfter = words.text('numbers-after');
  if (numbersAfter !== undefined && checkFilingNumber('', numbersAfter).length > 0)
    throw new UsageError(`needs --numbers-after AS-<year>-<6 digits>, not '${numbersAfter}'`);
  return numbersAfter;
}

/** What to do about access after a restore. */
const keysOfBackup =
  'keys, tokens and suspensions are those of the backup: revoke and suspend again what was changed since';

/**
 * What to do about an evidence log that may have been published further than the backup. `keepFile` says what to do with the
 * checkpoint file; `env` is what stands before the command.
 */
const forkFirst = (keepFile: string, env: string): string[] => [
  'the evidence log was published, and serve rejects a registry that lacks published leaves:',
  `${keepFile}. If artseal check then prints a fault for the evidence log, run`,
  `${env}artseal evidence fork: it says what is wrong, and with --accept begins a new log that names the last checkpoint`,
];

/** `artseal restore` */
export const restore: Command = {
  usage: 'restore FILE --into DIR [--numbers-after FILING_NO] [--json]',
  summary: 'restore a backup into an empty folder',
  details: [
    'DIR must be empty or missing. The backup is verified first. Stop the server that you replace before you serve DIR.',
    ...numbersAfterHelp,
    'Up to 10,000 more numbers are skipped at random, so that two restored folders hardly ever give out the same numbers. Still,',
    'serve only one folder restored from a backup.',
    'For five minutes after the first start, signed calls are rejected: the backup does not have the latest nonces.',
  ],
  run: async (words, terminal) => {
    const numbersAfter = readNumbersAfter(words);
    if (usesPostgres(terminal.env)) refuse(settings.databaseUrl, `is set, and ${postgresBackups}`);
    const calendar = createCalendar(readTimeZone(terminal.env));
    const [file, into] = [resolve(words.required('FILE')), resolve(words.required('into'))];
    const { manifest, gaps, isPublished } = await withProgress(words, terminal, (progress) =>
      restoreBackup({
        ...{ file, into, numbersAfter, progress, calendar, nowMs: Date.now(), random: Math.random },
      }),
    );
    const { takenAt, database, masterKeys, holdsMasterKeys } = manifest;
    const backup = writeMessage(BackupSchema, factsOfBackup(file, manifest));
    terminal.show(
      { into, backup, skipped: gaps, isLogPublished: isPublished },
      `restored ${into}: ${database.environment}, as of ${takenAt}`,
      `${database.filings} filings, ${database.orders} escrow orders`,
      ...gaps.map(gapLine),
      keysOfBackup,
      ...(numbersAfter === undefined ? [restoreAgain] : []),
      ...(holdsMasterKeys || masterKeys.length === 0
        ? []
        : [`serve needs the master keys ${masterKeys.join(', ')}, which are not in a backup`]),
      ...(isPublished
        ? forkFirst(
            `stop the server that you replace, and copy its log-checkpoint into ${into} if it is readable`,
            `ARTSEAL_DATA_DIR=${into} `,
          )
        : []),
      `next: stop the server that you replace, then run ARTSEAL_DATA_DIR=${into} artseal serve`,
    );
  },
};

const restoreAgain =
  'If you know the last filing number, or served another folder restored from this backup, restore again with --numbers-after.';

const restored: Action = {
  usage: 'database restored --taken-at TIME [--numbers-after FILING_NO] [--json]',
  details: [
    'Records that the database was put back to an earlier state, so that no number, event sequence or nonce that was given out',
    'since is given out again. Run it before the first start, and before you serve another copy.',
    '--taken-at  is the time of that state: the target of a point-in-time recovery, or when the backup was taken. It takes a day',
    '            of ARTSEAL_TIME_ZONE (2026-11-21), a time (2026-11-21T09:15:00+08:00) or a duration before now (90m).',
    ...numbersAfterHelp,
    'For five minutes after the first start, signed calls are rejected: the database does not have the latest nonces.',
  ],
  run: async (words, terminal) => {
    const numbersAfter = readNumbersAfter(words);
    const nowMs = Date.now();
    const takenAtMs = (readInstant(words, 'taken-at', 'BEFORE', readTimeZone(terminal.env)) ?? 0) * 1_000;
    if (takenAtMs > nowMs)
      throw new UsageError(`takes no --taken-at in the future, ${utcTimestamp(takenAtMs)}`);
    const config = readConfig(terminal.env);
    const { database: place, dataDir } = config;
    if (place === undefined)
      refuse(settings.databaseUrl, 'is not set: on SQLite, use artseal restore, which records it');
    const { gaps, isPublished } = await recordRestored(config, place, {
      ...{ takenAtMs, nowMs, numbersAfter, random: Math.random },
    });
    const takenAt = utcTimestamp(takenAtMs);
    terminal.show(
      { database: place.url, takenAt, skipped: gaps, isLogPublished: isPublished },
      `recorded that ${place.url} was restored, as of ${takenAt}`,
      ...gaps.map(gapLine),
      keysOfBackup,
      ...(numbersAfter === undefined ? [recordAgain] : []),
      ...(isPublished ? forkFirst(`keep the newest log-checkpoint in ${dataDir}`, '') : []),
      'next: run artseal serve',
    );
  },
};

const recordAgain =
  'If you know the last filing number, put the database back again, and repeat this with --numbers-after.';

const roles: Action = {
  usage: 'database roles --app ROLE [--reader ROLE]',
  details: [
    'Prints SQL for psql, by which the role that owns the tables grants other roles what they need. Run it after each artseal init',
    'and artseal upgrade. The roles must exist.',
    '--app     serves, and runs all commands but init and upgrade: it cannot change or remove what keeps the evidence.',
    '--reader  reads all but secrets.',
  ],
  run: async (words, { print }) => {
    const { grantsFor } = await import('../store/postgres/roles.ts');
    for (const line of grantsFor({ app: words.required('app'), reader: words.text('reader') })) print(line);
  },
};

/** `artseal database` */
export const database: CommandGroup = {
  summary: 'grant roles their rights on PostgreSQL, and record that the database was restored',
  actions: [roles, restored],
  details: ['For ARTSEAL_DATABASE_URL. See docs/operate/postgres.md.'],
};
