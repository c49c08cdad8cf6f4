import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';

/** A disk whose writes or reads can be made to fail. */
export interface BadDisk {
  /** Keeps `kept` more commits of writes, then fails `count` of them, by default all. */
  failCommits(kept?: number, count?: number): void;
  /** Fails transactions that only read. */
  failReads(): void;
  /** Lets all writes and reads succeed from now on. */
  heal(): void;
  /** How many commits failed. */
  failed(): number;
}

/** Runs `open`, and puts the databases that it opens on a disk that can be made to fail. */
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
