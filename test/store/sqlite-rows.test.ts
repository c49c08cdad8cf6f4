import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { pageOf } from '../../src/store/engine/paging.ts';
import { createEvidenceLog } from '../../src/store/sqlite/log.ts';
import { sqliteInThisThread } from './engines.ts';
import { anyOrder, firstPage, nowS, refused, time, toFile, toOpen } from './promises/fixtures.ts';
import { storeTests } from './promises/tests.ts';
import { openRaw } from './raw-database.ts';

storeTests(sqliteInThisThread).test(
  'after the last number of a year, filings and orders are rejected and nothing is stored',
  async (first, t) => {
    const by = first.gallery;
    const filingNo = await first.fileOne(by);
    await first.close();
    const raw = openRaw(t, first.dataDir);
    const log = createEvidenceLog(drizzle({ client: raw }));
    const record = { kind: 'FILING', number: 'AS-2026-999998', sequence: 1, atS: nowS } as const;
    const { leafIndex } = log.appendRecord({ ...record, saltBytes: 32, commitment: () => '00'.repeat(32) });
    log.write();
    raw.exec(`INSERT INTO filing
    SELECT 999998, 'AS-2026-999998', caller_id, author, era, size, material, condition, price, hash, timestamp, filed_at_s, id,
      salt, ${leafIndex}, NULL, record_version, attachments
    FROM filing`);
    raw.exec(`INSERT INTO number_sequence (kind, year, last) VALUES ('ESCROW', 2026, ${36 ** 4 - 1})`);
    // Another store, because the first one keeps the last number in memory.
    const store = await first.openAgain();
    assert.equal(await store.fileOne(by), 'AS-2026-999999');
    for (let tries = 0; tries < 2; tries += 1) {
      await refused(store.perform(toFile(by)), 'FILING_NUMBERS_EXHAUSTED');
    }
    assert.equal(await store.fileOne(by, time('2027-01-01T00:00:00+00:00')), 'AS-2027-000001');

    const { escrowId } = await store.opened(by, filingNo);
    await store.settled(escrowId, { to: 'CLOSED' });
    const again = store.perform(toOpen(by, filingNo, { owner: undefined }));
    await refused(again, 'ESCROW_NUMBERS_EXHAUSTED');
    assert.equal(raw.prepare('SELECT count(*) FROM filing').pluck().get(), 4);
    assert.equal(
      (await store.perform({ kind: 'ListEscrows', filter: anyOrder, page: firstPage(10) })).items.length,
      1,
    );
  },
);

test('a page ends before its items have more than 256 KiB as JSON, but has its first item', async () => {
  const rows = [{ id: 3 }, { id: 2 }, { id: 1 }];
  for (const [characters, shown] of [
    [30_000, [3, 2]],
    [70_000, [3]],
  ] as const) {
    const toItem = ({ id }: { id: number }) => ({ id, text: '🖌'.repeat(characters) });
    const { items, next } = await pageOf(rows, { from: undefined, size: 100 }, toItem);
    assert.deepEqual([items.map(({ id }) => id), next], [shown, shown.at(-1)]);
  }
});
