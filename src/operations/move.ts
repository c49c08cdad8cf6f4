import { resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import type { Progress } from '../store/move/copy.ts';
import type { Moved } from '../store/move/move.ts';
import type { PostgresPlace } from '../store/store.ts';
import { trustedFiles } from './registry.ts';

/**
 * Moves the database of a deployment between its data folder and `place`. Throws FilesExposed, FolderInUse and
 * DatabaseError.
 */
export async function moveDatabase(
  config: Config,
  place: PostgresPlace,
  target: 'POSTGRES' | 'FOLDER',
  progress: Progress,
): Promise<Moved> {
  refuseChangeableByOthers(trustedFiles(config));
  const { moveToFolder, moveToPostgres } = await import('../store/move/move.ts');
  const { environment, currency } = config;
  const move = { dataDir: resolve(config.dataDir), environment, currency, place, progress };
  return target === 'POSTGRES' ? moveToPostgres(move) : moveToFolder(move);
}
