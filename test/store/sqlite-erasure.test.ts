import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { leafRanges, readLeafRanges } from '../../src/domain/leaf.ts';
import { tester } from '../support/audit-log.ts';
import { sqliteInThisThread } from './engines.ts';
import { noon, painting, time } from './promises/fixtures.ts';
import { storeTests } from './promises/tests.ts';
import { openRaw } from './raw-database.ts';

const { test } = storeTests(sqliteInThisThread);

test('each event that lists erased leaves fits into a tile, however many records were erased', async (store, t) => {
  const by = store.gallery;
  const filingNo = await store.fileOne(by, time('2015-06-01T12:00:00+00:00'));
  await store.acceptClock(noon);
  const raw = openRaw(t, store.dataDir);
  // The longest indexes, with no two in a range.
  const indexes = Array.from({ length: 10_000 }, (_, nth) => Number.MAX_SAFE_INTEGER - 2 * nth);
  const insert = raw.prepare(
    "INSERT INTO provenance_record VALUES (?, ?, 'TRANSFER', '2015-06-01', 1433160000, zeroblob(32), ?)",
  );
  raw.transaction(() => {
    for (const [nth, index] of indexes.entries()) insert.run(filingNo, nth + 2, BigInt(index));
  })();
  const gone = await store.perform({
    kind: 'EraseFilings',
    by: { ...tester, atS: noon.atMs / 1_000 },
    filingNos: [filingNo],
  });
  assert.deepEqual(gone, [{ filingNo, records: 10_001 }]);
  const { size } = await store.perform({ kind: 'GetTree' });
  const leaves = (await store.perform({ kind: 'ReadLeaves', index: 3, width: size - 3 })) ?? [];
  const events = leaves.map((leaf) => ({ bytes: Buffer.byteLength(leaf), ...JSON.parse(leaf) }));
  assert.equal(events.length, 4);
  const listed: number[] = [];
  for (const { bytes, kind, detail } of events) {
    assert.equal(kind, 'RECORDS_ERASED');
    assert.ok(bytes <= 65_535, `${bytes} bytes`);
    const of = (readLeafRanges(detail.leaves) ?? []).map(({ first }) => first);
    assert.equal(of.length, detail.records);
    listed.push(...of);
  }
  assert.equal(leafRanges(listed), leafRanges([1, ...indexes]));
});

test('an erasure empties the write-ahead log, or later if another process reads the database', async (store, t) => {
  const by = store.gallery;
  const author = 'who is to be forgotten';
  const at = time('2015-06-01T12:00:00+00:00');
  const file = async () => {
    const artwork = { ...painting, author };
    return (await store.perform({ kind: 'FileArtwork', artwork, at, by })).filingNo;
  };
  const [first, second] = [await file(), await file()];
  await store.acceptClock(noon);
  const atS = noon.atMs / 1_000;
  const erase = (filingNo: string) =>
    store.perform({ kind: 'EraseFilings', by: { ...tester, atS }, filingNos: [filingNo] });
  const logBytes = () => statSync(join(store.dataDir, 'artseal.db-wal')).size;
  const raw = openRaw(t, store.dataDir);
  raw.exec('BEGIN');
  raw.prepare('SELECT count(*) FROM filing').get();
  await erase(first);
  assert.ok(logBytes() > 0);
  await store.perform({ kind: 'GetTree' });
  assert.ok(logBytes() > 0);
  raw.exec('COMMIT');
  await store.perform({ kind: 'GetTree' });
  assert.equal(logBytes(), 0);
  await erase(second);
  assert.equal(logBytes(), 0);
  assert.ok(!readFileSync(join(store.dataDir, 'artseal.db')).includes(author));
});
