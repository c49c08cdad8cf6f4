import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';

/** A disk whose commits of what was written can be made to fail while reading goes on, and the other way round. */
export interface BadDisk {
  /** Fails so many commits that follow after `kept` more were kept; all of them unless told how many. */
  failCommits(kept?: number, count?: number): void;
  /** Fails everything that only reads. */
  failReads(): void;
  /** Keeps all commits from now on, and lets everything be read. */
  heal(): void;
  /** How many commits failed. */
  failed(): number;
}

/** Has the databases that are opened while `open` runs stand on a disk that can be made to fail. */
export async function onBadDisk<T>(
  test: Pick<TestContext, 'mock'>,
  open: () => Promise<T>,
): Promise<readonly [T, BadDisk]> {
  let keptLeft = Number.POSITIVE_INFINITY;
  let failuresLeft = 0;
  let failed = 0;
  let isReadable = true;
  const { prepare } = Sqlite.prototype;
  const writing = new WeakSet<Sqlite.Database>();
  function prepareOnBadDisk(this: Sqlite.Database, sql: string): Sqlite.Statement {
    const statement: Sqlite.Statement = prepare.call(this, sql);
    const run = statement.run.bind(statement);
    if (sql === 'BEGIN IMMEDIATE') {
      statement.run = () => {
        writing.add(this);
        return run();
      };
    }
    if (sql === 'BEGIN') {
      statement.run = () => {
        if (isReadable) return run();
        failed += 1;
        throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR');
      };
    }
    if (sql !== 'COMMIT') return statement;
    statement.run = () => {
      if (!writing.delete(this)) return run();
      keptLeft -= 1;
      if (keptLeft >= 0 || failuresLeft <= 0) return run();
      failuresLeft -= 1;
      failed += 1;
      throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR');
    };
    return statement;
  }
  const opening = test.mock.method(Sqlite.prototype, 'prepare', prepareOnBadDisk as typeof prepare);
  const opened = await open();
  opening.mock.restore();
  const disk: BadDisk = {
    failCommits: (kept = 0, count = Number.POSITIVE_INFINITY) => {
      keptLeft = kept;
      failuresLeft = count;
    },
    failReads: () => {
      isReadable = false;
    },
    heal: () => {
      isReadable = true;
      failuresLeft = 0;
    },
    failed: () => failed,
  };
  return [opened, disk];
}
