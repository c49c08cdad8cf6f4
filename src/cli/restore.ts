import { resolve } from 'node:path';
import { BackupSchema } from '../../gen/artseal/v1/backup_pb.ts';
import { writeMessage } from '../api/operation.ts';
import { readTimeZone, settings, usesPostgres } from '../config/config.ts';
import { refuse } from '../config/settings.ts';
import { createCalendar } from '../domain/calendar.ts';
import { postgresBackups } from '../operations/backup/manifest.ts';
import { restoreBackup } from '../operations/backup/restore.ts';
import {
  factsOfBackup,
  forkFirst,
  gapLine,
  keysOfBackup,
  numbersAfterHelp,
  readNumbersAfter,
} from './backup-facts.ts';
import type { Command } from './command.ts';
import { withProgress } from './progress.ts';

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
      ...(numbersAfter === undefined ? [ifKnown] : []),
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

const ifKnown =
  'If you know the last filing number, or served another folder restored from this backup, restore again with --numbers-after.';
