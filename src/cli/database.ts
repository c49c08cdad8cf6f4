import { readConfig, readTimeZone, settings } from '../config/config.ts';
import { refuse } from '../config/settings.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { recordRestored } from '../operations/backup/years-since.ts';
import { forkFirst, gapLine, keysOfBackup, numbersAfterHelp, readNumbersAfter } from './backup-facts.ts';
import { type Action, type CommandGroup, readInstant, UsageError } from './command.ts';

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
      ...(numbersAfter === undefined ? [ifKnown] : []),
      ...(isPublished ? forkFirst(`keep the newest log-checkpoint in ${dataDir}`, '') : []),
      'next: run artseal serve',
    );
  },
};

const ifKnown =
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
