import { resolve } from 'node:path';
import { readConfig, settings } from '../config/config.ts';
import { refuse } from '../config/settings.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import { trustedFiles } from '../operations/registry.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { type Command, UsageError } from './command.ts';
import { withProgress } from './progress.ts';

/** `artseal move` */
export const move: Command = {
  usage: 'move --to TARGET [--progress] [--json]',
  summary: 'move the database to PostgreSQL, or back into the data folder',
  details: [
    '--to postgres://USER@HOST/NAME  moves the database of ARTSEAL_DATA_DIR to an empty database. The settings ARTSEAL_DATABASE_…',
    '                                apply. The old file is renamed to artseal.db.moved.',
    '--to DIR  moves the database of ARTSEAL_DATABASE_URL into ARTSEAL_DATA_DIR, which must be DIR.',
    'Stop the server first. The target is used once everything is copied and compared; until then the source is. If the command',
    'is interrupted, run it again.',
    '--progress  prints lines of JSON {"progress":{"step":…,"done":…,"total":…}} before the result; done and total are rows.',
  ],
  run: async (words, terminal) => {
    const to = words.required('to');
    const isToPostgres = /^postgres(?:ql)?:/.test(to);
    const config = readConfig({
      ...terminal.env,
      ...(isToPostgres && { [settings.databaseUrl.variable]: to }),
    });
    const { dataDir, database: place } = config;
    if (place === undefined)
      return refuse(settings.databaseUrl, 'must name the database on PostgreSQL to move from');
    if (!isToPostgres && resolve(to) !== resolve(dataDir))
      throw new UsageError(`needs --to ${dataDir}, the ARTSEAL_DATA_DIR of this deployment, not '${to}'`);
    const file = databaseFile(dataDir);
    const [from, target] = isToPostgres ? [file, place.url] : [place.url, file];
    refuseChangeableByOthers(trustedFiles(config));
    const { moveToFolder, moveToPostgres } = await import('../store/move/move.ts');
    const { environment, currency } = config;
    const { rows, kept } = await withProgress(
      words,
      terminal,
      (progress) => {
        const order = { dataDir: resolve(dataDir), environment, currency, place, progress };
        return isToPostgres ? moveToPostgres(order) : moveToFolder(order);
      },
      (count) => `${count} rows`,
    );
    const total = Object.values(rows ?? {}).reduce((sum, count) => sum + count, 0);
    terminal.show(
      { from, to: target, rows, kept },
      rows === undefined
        ? `${from} was moved to ${target} before`
        : `moved ${total} rows from ${from} to ${target}`,
      ...(kept === undefined ? [] : [`the old database is ${kept}: remove it when you no longer need it`]),
      isToPostgres
        ? `next: set ARTSEAL_DATABASE_URL=${target}, and run artseal serve with the same ARTSEAL_DATA_DIR`
        : `next: unset ARTSEAL_DATABASE_URL, and run artseal serve`,
    );
  },
};
