import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { createEvidenceLog } from '../../src/store/sqlite/evidence-log.ts';
import { perform } from '../../src/store/store.ts';
import { countNonces } from '../support/nonces.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  addPlatform,
  anyOrder,
  fileOne,
  firstPage,
  nowS,
  opened,
  refused,
  sandbox,
  settled,
  spend,
  time,
  toFile,
  toOpen,
} from './promises/fixtures.ts';

/** A store, and another connection to its database. */
function openWithRaw(t: TestContext, dataDir = temporaryFolder(t)) {
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const openRaw = () => {
    const raw = new Sqlite(join(dataDir, 'artseal.db'));
    t.after(() => raw.close());
    return raw;
  };
  return { store, openRaw };
}

test('after the last number of a year, filings and orders are rejected and nothing is stored', async (t) => {
  const dataDir = temporaryFolder(t);
  const first = openWithRaw(t, dataDir);
  const by = await addPlatform(first.store, 'gallery');
  const filingNo = await fileOne(first.store, by);
  await first.store.close();
  const raw = first.openRaw();
  const log = createEvidenceLog(drizzle({ client: raw }));
  const record = { kind: 'FILING', number: 'AS-2026-999998', sequence: 1, atS: nowS } as const;
  const { leafIndex } = log.appendRecord({ ...record, evidenceHash: '00'.repeat(32) });
  log.write();
  raw.exec(`INSERT INTO filing
    SELECT 999998, 'AS-2026-999998', caller_id, author, era, size, material, condition, price, hash, timestamp, filed_at_s, id,
      salt, ${leafIndex}, NULL
    FROM filing`);
  raw.exec(`INSERT INTO number_sequence (kind, year, last) VALUES ('ESCROW', 2026, ${36 ** 4 - 1})`);
  // Another store, because the first one keeps the last number in memory.
  const { store } = openWithRaw(t, dataDir);
  assert.equal(await fileOne(store, by), 'AS-2026-999999');
  for (let tries = 0; tries < 2; tries += 1) {
    await refused(perform(store, toFile(by)), 'FILING_NUMBERS_EXHAUSTED');
  }
  assert.equal(await fileOne(store, by, time('2027-01-01T00:00:00+00:00')), 'AS-2027-000001');

  const { escrowId } = await opened(store, by, filingNo);
  await settled(store, escrowId, { to: 'CLOSED' });
  const again = perform(store, toOpen(by, filingNo, { owner: undefined }));
  await refused(again, 'ESCROW_NUMBERS_EXHAUSTED');
  assert.equal(raw.prepare('SELECT count(*) FROM filing').pluck().get(), 4);
  assert.equal(
    (await perform(store, { kind: 'ListEscrows', filter: anyOrder, page: firstPage(10) })).items.length,
    1,
  );
});

test('expired nonces are deleted as others are spent', async (t) => {
  const { store, openRaw } = openWithRaw(t);
  const claim = (nonce: number, atS: number) => spend(store, 1, String(nonce), atS);
  for (let nonce = 0; nonce < 50; nonce += 1) await claim(nonce, nowS);
  for (let nonce = 50; nonce < 100; nonce += 1) await claim(nonce, nowS + 10_000);
  const raw = openRaw();
  assert.equal(countNonces(raw), 50);
});
