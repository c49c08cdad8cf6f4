import { tmpdir } from 'node:os';
import type { Config } from '../../config/config.ts';
import { ApiError } from '../../domain/reason.ts';
import type { ChildCommands } from '../child-commands.ts';
import { postgresBackups } from './manifest.ts';

/** Runs `artseal backup` commands on the data folder of a server, in child processes. */
export type BackupCommands = ReturnType<typeof createBackupCommands>;

/**
 * The child reads a snapshot of the database. It receives the data folder and the folder for temporary files, from which the
 * executable loads SQLite, and no secret.
 */
export function createBackupCommands(
  commands: ChildCommands,
  { dataDir, database }: Pick<Config, 'dataDir' | 'database'>,
) {
  const commandOf = (words: readonly string[]) => {
    const env = { ARTSEAL_DATA_DIR: dataDir, TMPDIR: tmpdir() };
    return { words: ['backup', ...words, '--offline-copy', '--json', '--progress'], env };
  };
  return {
    /**
     * Yields what a command prints: its progress, and at last its result as JSON of the fields of its response. Throws
     * RATE_LIMITED while another command runs, and BACKUP_FAILED.
     */
    run: async function* (words: readonly string[], signal: AbortSignal) {
      // A backup can be verified anywhere.
      if (database !== undefined && words[0] !== 'verify')
        throw new ApiError('BACKUP_FAILED', `${postgresBackups}.`);
      try {
        yield* commands.run(commandOf(words), signal);
      } catch (error) {
        if (error instanceof ApiError || !(error instanceof Error)) throw error;
        throw new ApiError('BACKUP_FAILED', error.message, {}, { cause: error });
      }
    },
    /** The same, but waits until no other command runs. Throws an Error that says why it failed. */
    runInTurn: (words: readonly string[], signal: AbortSignal) =>
      commands.runInTurn(commandOf(words), signal),
  };
}
