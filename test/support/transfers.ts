import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { createEvidenceLog } from '../../src/store/sqlite/evidence-log.ts';
import { createIncidents } from '../../src/store/sqlite/failure.ts';
import { createLeaves } from '../../src/store/sqlite/leaves.ts';
import { createOutbox } from '../../src/store/sqlite/outbox.ts';
import { createProvenanceRecords } from '../../src/store/sqlite/provenance.ts';
import { createRecordCheck } from '../../src/store/sqlite/record-check.ts';
import { createTrustedClock } from '../../src/store/sqlite/trusted-clock.ts';
import { eventually } from './eventually.ts';

/** The longest wait for a commit of the store that is open. */
const timeoutMs = 60_000;

/** When all of them are written. */
const at = { atMs: 1_795_262_400_000, timestamp: '2026-11-21T12:00:00+00:00' };

/** Writes TRANSFER records of a filing into the database of a data folder, past the store, until it has so many. */
export async function writeTransfers(dataDir: string, filingNo: string, count: number): Promise<void> {
  // A store of this process ends its commit in a later turn: to wait for that here would wait for ever.
  const client = new Sqlite(join(dataDir, 'artseal.db'), { timeout: 0 });
  const database = drizzle({ client });
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves);
  const check = createRecordCheck(log, leaves, createIncidents());
  const outbox = createOutbox(database, createTrustedClock(database, log));
  const { appendTransfer, transfersOf } = createProvenanceRecords(database, log, outbox, check);
  const write = client.transaction(() => {
    while (transfersOf(filingNo) < count) {
      appendTransfer(filingNo, at);
      log.write();
      outbox.write();
    }
  });
  try {
    await eventually('the database is free', timeoutMs, () => {
      try {
        write.immediate();
        return true;
      } catch (error) {
        if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY') return false;
        throw error;
      }
    });
  } finally {
    client.close();
  }
}
