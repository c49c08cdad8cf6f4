import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFileSync } from '../../lib/replace-file.ts';
import { privateMode } from './durable-files.ts';

/** Where the database of a data folder is, if the folder has none of its own. */
export interface MoveRecord {
  /** By which a database on PostgreSQL knows the folder. It never changes. */
  readonly folderId: string;
  readonly url: string;
}

/** Its file in the data folder. */
const moveRecordName = 'moved-database.json';

/** Reads the record of a data folder; undefined if its database was never moved. */
export function readMoveRecord(dataDir: string): MoveRecord | undefined {
  const file = join(dataDir, moveRecordName);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}

/** Writes the record of a data folder. */
export function writeMoveRecord(dataDir: string, url: string): MoveRecord {
  const record = { folderId: readMoveRecord(dataDir)?.folderId ?? randomUUID(), url };
  replaceFileSync(join(dataDir, moveRecordName), `${JSON.stringify(record)}\n`, privateMode);
  return record;
}
