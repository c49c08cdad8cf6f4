import { createIncidents } from '../../src/store/engine/failure.ts';
import { createRecordCheck } from '../../src/store/engine/record-check.ts';
import { createProvenanceRecords } from '../../src/store/handlers/provenance.ts';
import { asynchronous, logForHandlers } from '../../src/store/sqlite/all-handlers.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createEvidenceLog, createLeaves } from '../../src/store/sqlite/log.ts';
import { createOutbox } from '../../src/store/sqlite/outbox.ts';
import { classifyError } from '../../src/store/sqlite/sqlite-errors.ts';
import { forHandlers } from '../../src/store/sqlite/statement.ts';
import { createTrustedClock } from '../../src/store/sqlite/trusted-clock.ts';
import { sandbox } from '../store/promises/fixtures.ts';

/** When all of them are written. */
const at = { atMs: 1_795_262_400_000, timestamp: '2026-11-21T12:00:00+00:00' };

/** Writes TRANSFER records of a filing into the database of a data folder that no store uses, until it has so many. */
export async function writeTransfers(dataDir: string, filingNo: string, count: number): Promise<void> {
  const { database, close } = openDatabase({ dataDir, ...sandbox });
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves);
  const check = createRecordCheck({ ...log, leaves }, createIncidents(classifyError));
  const outbox = createOutbox(database, createTrustedClock(database, log));
  const { appendTransfer, transfersOf } = createProvenanceRecords({
    database: forHandlers(database),
    log: logForHandlers(log, leaves),
    check: asynchronous(check),
    outbox,
  });
  database.$client.exec('BEGIN');
  while ((await transfersOf(filingNo)) < count) {
    await appendTransfer(filingNo, at);
    log.write();
  }
  outbox.write();
  database.$client.exec('COMMIT');
  close();
}
