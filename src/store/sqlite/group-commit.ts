import type { Database } from 'better-sqlite3';
import { type Refusal, unavailable } from '../../domain/reason.ts';
import type { FileWatch } from './file-watch.ts';

/** How many effects one commit may hold; far more than the calls in flight can have. */
const effectsPerCommitMax = 100_000;

/** SQLite's result codes that say that the machine, not the service, is at fault. */
const machineFaults = /^SQLITE_(FULL|BUSY|LOCKED|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)/;

/** What callers are told whose write went into files that were taken away meanwhile. */
const fateUnknown =
  'It is not known whether this was stored; ask for it, or repeat the call under the same Idempotency-Key.';

/** Writes that happen in the same turn of the event loop share one transaction and one fsync. */
export interface GroupCommit {
  /**
   * Applies an effect in a savepoint of its own: entirely, or, when it throws, not at all. It is seen by
   * everything after it on this connection, and durable when `durable()` says so.
   */
  write<T>(effect: () => T): T;
  /** The same for an effect that is one statement, which SQLite itself does entirely or not at all. */
  writeStatement<T>(statement: () => T): T;
  /** Reads what all effects so far have left. */
  read<T>(query: () => T): T;
  /**
   * Resolves when the effects so far are on disk; rejects with UNAVAILABLE when they are undone instead, or when the
   * files went away while they were committed: then its message says that it is not known whether they are stored.
   */
  durable(): Promise<void>;
}

interface Commit {
  effects: number;
  /** Why its transaction is lost, if it is. */
  failure: unknown;
  readonly done: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Refusal) => void;
}

/** Groups the writes of a connection that has no other writer, while its files are in their place. */
export function createGroupCommit(database: Database, files: FileWatch): GroupCommit {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const savepoint = database.prepare('SAVEPOINT effect');
  const release = database.prepare('RELEASE effect');
  const rollbackEffect = database.prepare('ROLLBACK TO effect');
  let open: Commit | undefined;

  /** Does a piece of work on the database; what the machine refuses becomes UNAVAILABLE. */
  function attempt<T>(work: () => T): T {
    if (!database.open) throw unavailable('The store is closed.');
    const fault = files.found();
    if (fault !== undefined) throw unavailable('The store cannot be written or read now.', new Error(fault));
    try {
      return work();
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      throw machineFaults.test(code) ? unavailable('The store cannot be written or read now.', error) : error;
    }
  }

  function openCommit(): Commit {
    attempt(() => begin.run());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // A caller that went away awaits nothing; its failure must not end the process.
    promise.catch(() => {});
    // After the I/O events of this turn and all that they set off, so that they share the fsync.
    setImmediate(close);
    return { effects: 0, failure: undefined, done: promise, resolve, reject };
  }

  function close(): void {
    const closing = open;
    if (closing === undefined) return;
    open = undefined;
    try {
      if (closing.failure !== undefined) throw closing.failure;
      refuseDisplaced();
      commit.run();
    } catch (error) {
      if (database.inTransaction) database.exec('ROLLBACK');
      closing.reject(unavailable('The store could not keep the write; nothing was stored.', error));
      return;
    }
    try {
      // What went into files that are not in their place any more is there once they are back, if they ever are.
      refuseDisplaced();
      closing.resolve();
    } catch (error) {
      closing.reject(unavailable(fateUnknown, error));
    }
  }

  /** Throws if the files are not in their place. */
  function refuseDisplaced(): void {
    const fault = files.look();
    if (fault !== undefined) throw new Error(fault);
  }

  function joinCommit(): Commit {
    open ??= openCommit();
    if (open.failure !== undefined || open.effects >= effectsPerCommitMax) {
      throw unavailable('The store takes no more writes at this moment.', open.failure);
    }
    open.effects += 1;
    return open;
  }

  function writeStatement<T>(statement: () => T): T {
    const joined = joinCommit();
    try {
      return attempt(statement);
    } catch (error) {
      // On a full disk and the like SQLite rolls the whole transaction back by itself.
      if (!database.inTransaction) joined.failure = error;
      throw error;
    }
  }

  function write<T>(effect: () => T): T {
    return writeStatement(() => {
      savepoint.run();
      try {
        const result = effect();
        release.run();
        return result;
      } catch (error) {
        if (database.inTransaction) {
          rollbackEffect.run();
          release.run();
        }
        throw error;
      }
    });
  }

  return { write, writeStatement, read: attempt, durable: () => open?.done ?? Promise.resolve() };
}
