import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Statement } from 'better-sqlite3';
import { statementPrototype } from '../support/statement.ts';

/** The number of transactions in the write-ahead log of a data folder: the last frame of each has the size of the database. */
export function commitsIn(dataDir: string): number {
  const wal = readFileSync(join(dataDir, 'artseal.db-wal'));
  const [headerBytes, frameHeaderBytes] = [32, 24];
  const frameBytes = frameHeaderBytes + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = headerBytes; at + frameBytes <= wal.length; at += frameBytes) {
    const sameLog = wal.subarray(at + 8, at + 16).equals(wal.subarray(16, 24));
    if (sameLog && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

/** Calls these before and after the next commit of this process. */
export function aroundCommit(
  t: TestContext,
  { before, after }: { before?: () => void; after?: () => void },
): void {
  const { run } = statementPrototype;
  const watched = t.mock.method(statementPrototype, 'run', function (this: Statement, ...values: unknown[]) {
    if (this.source !== 'COMMIT') return run.apply(this, values);
    watched.mock.restore();
    before?.();
    const result = run.apply(this, values);
    after?.();
    return result;
  });
}
