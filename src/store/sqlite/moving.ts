import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { syncFolder } from '../../lib/replace-file.ts';
import { DatabaseError } from '../engine/failure.ts';
import type { PortableWrites } from '../engine/portable-tables.ts';
import type { StoreOptions } from '../store.ts';
import { damaged, damagesOf, type OpenedDatabase, openDatabase } from './database.ts';
import { makePrivateFile, syncFile } from './durable-files.ts';
import { databaseFile, withSqliteFiles } from './location.ts';
import { faultsInLog, faultsInOpenLog } from './log-check.ts';
import { createPortable } from './portable.ts';
import { migrate, migrations, schemaOf } from './upgrade.ts';

/** A database that moves elsewhere. No process uses its folder meanwhile. */
export interface SourceDatabase extends Pick<OpenedDatabase, 'close'> {
  readonly tables: PortableWrites;
  /** Closes the database and renames its file. Returns the new name. */
  setAside(): string;
}

/** Opens the database of a data folder and checks all of it. Throws FolderInUse and DatabaseError. */
export async function openSource(
  options: Pick<StoreOptions, 'dataDir' | 'environment' | 'currency'>,
): Promise<SourceDatabase> {
  const opened = openDatabase({ ...options, opening: 'EXISTING' }, {}, (client) => {
    const damages = damagesOf(client);
    if (damages.length > 0) throw damaged(client.name, damages.join('; '));
    if (schemaOf(client) < migrations.length)
      throw new DatabaseError(
        `${client.name} has schema ${schemaOf(client)}, and this version needs ${migrations.length}: run artseal upgrade.`,
      );
  });
  const { $client: client } = opened.database;
  const { close } = opened;
  try {
    refuseFaults(client.name, await faultsInOpenLog(opened.database));
    // Renamed without its log, the database would lack what the log has.
    const [fold] = client.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
    if (fold?.busy !== 0)
      throw new DatabaseError(`another process reads ${client.name}: end it, and run the command again.`);
  } catch (error) {
    close();
    throw error;
  }
  return {
    close,
    tables: createPortable(client),
    setAside: () => {
      const [file = '', ...logs] = withSqliteFiles(client.name);
      const moved = `${file}.moved`;
      client.close();
      renameSync(file, moved);
      for (const log of logs) rmSync(log, { force: true });
      syncFolder(dirname(file));
      return moved;
    },
  };
}

/** A new database that is not in its place yet. */
export interface TargetDatabase {
  readonly tables: PortableWrites;
  /** Closes the database, checks all of it, and flushes it to disk. Throws DatabaseError. */
  finish(): Promise<void>;
  /** Gives the database its name. */
  putInPlace(): void;
  /** Removes it unless it is in its place. */
  close(): void;
}

/** Creates the database of a data folder under another name. */
export function createTarget(dataDir: string): TargetDatabase {
  const file = databaseFile(dataDir);
  const draft = `${file}.partial`;
  const remove = () => {
    for (const name of withSqliteFiles(draft)) rmSync(name, { force: true });
  };
  remove();
  makePrivateFile(draft);
  const client = new Sqlite(draft);
  // What a crash leaves is removed.
  client.pragma('journal_mode = OFF');
  client.pragma('synchronous = OFF');
  client.pragma('foreign_keys = ON');
  client.exec('BEGIN');
  migrate(client);
  return {
    tables: createPortable(client),
    finish: async () => {
      client.exec('COMMIT');
      client.close();
      refuseFaults(draft, await faultsInLog(draft));
      syncFile(draft);
    },
    putInPlace: () => {
      renameSync(draft, file);
      syncFolder(dirname(file));
    },
    close: () => {
      client.close();
      remove();
    },
  };
}

function refuseFaults(file: string, [fault]: readonly string[]): void {
  if (fault !== undefined)
    throw new DatabaseError(`${file} is not moved: ${fault}. See docs/operate/incidents/record-changed.md.`);
}
