import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createEvidenceLog } from '../../src/store/sqlite/evidence-log.ts';
import { createIncidents } from '../../src/store/sqlite/failure.ts';
import { createLeaves } from '../../src/store/sqlite/leaves.ts';
import { createOutbox } from '../../src/store/sqlite/outbox.ts';
import { createProvenanceRecords } from '../../src/store/sqlite/provenance.ts';
import { createRecordCheck } from '../../src/store/sqlite/record-check.ts';
import { createTrustedClock } from '../../src/store/sqlite/trusted-clock.ts';
import { sandbox } from '../store/promises/fixtures.ts';

/** When all of them are written. */
const at = { atMs: 1_795_262_400_000, timestamp: '2026-11-21T12:00:00+00:00' };

/** Writes TRANSFER records of a filing into the database of a data folder that no store uses, until it has so many. */
export function writeTransfers(dataDir: string, filingNo: string, count: number): void {
  const { database, close } = openDatabase({ dataDir, ...sandbox });
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves);
  const check = createRecordCheck(log, leaves, createIncidents());
  const outbox = createOutbox(database, createTrustedClock(database, log));
  const { appendTransfer, transfersOf } = createProvenanceRecords(database, log, outbox, check);
  const write = database.$client.transaction(() => {
    while (transfersOf(filingNo) < count) {
      appendTransfer(filingNo, at);
      log.write();
    }
    outbox.write();
  });
  write();
  close();
}
