import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { leafRanges, readLeafRanges } from '../../src/domain/leaf.ts';
import { perform } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { sqliteInThisThread } from './engines.ts';
import { acceptClock, fileOne, noon, openGallery, painting, time } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

test('each event that lists erased leaves fits into a tile, however many records were erased', async (t) => {
  const { store, by, dataDir } = await openGallery(t, sqliteInThisThread);
  const filingNo = await fileOne(store, by, time('2015-06-01T12:00:00+00:00'));
  await acceptClock(store, noon);
  const raw = openRaw(t, dataDir);
  // The longest indexes, with no two in a range.
  const indexes = Array.from({ length: 10_000 }, (_, nth) => Number.MAX_SAFE_INTEGER - 2 * nth);
  const insert = raw.prepare(
    "INSERT INTO provenance_record VALUES (?, ?, 'TRANSFER', '2015-06-01', 1433160000, zeroblob(32), ?)",
  );
  raw.transaction(() => {
    for (const [nth, index] of indexes.entries()) insert.run(filingNo, nth + 2, BigInt(index));
  })();
  const gone = await perform(store, {
    kind: 'EraseFilings',
    by: { ...tester, atS: noon.atMs / 1_000 },
    filingNos: [filingNo],
  });
  assert.deepEqual(gone, [{ filingNo, records: 10_001 }]);
  const { size } = await perform(store, { kind: 'GetTree' });
  const leaves = (await perform(store, { kind: 'ReadLeaves', index: 3, width: size - 3 })) ?? [];
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

test('an erasure empties the write-ahead log, or later if another process reads the database', async (t) => {
  const { store, by, dataDir } = await openGallery(t, sqliteInThisThread);
  const author = 'who is to be forgotten';
  const at = time('2015-06-01T12:00:00+00:00');
  const file = async () => {
    const artwork = { ...painting, author };
    return (await perform(store, { kind: 'FileArtwork', artwork, at, by })).filingNo;
  };
  const [first, second] = [await file(), await file()];
  await acceptClock(store, noon);
  const atS = noon.atMs / 1_000;
  const erase = (filingNo: string) =>
    perform(store, { kind: 'EraseFilings', by: { ...tester, atS }, filingNos: [filingNo] });
  const logBytes = () => statSync(join(dataDir, 'artseal.db-wal')).size;
  const raw = openRaw(t, dataDir);
  raw.exec('BEGIN');
  raw.prepare('SELECT count(*) FROM filing').get();
  await erase(first);
  assert.ok(logBytes() > 0);
  await perform(store, { kind: 'GetTree' });
  assert.ok(logBytes() > 0);
  raw.exec('COMMIT');
  await perform(store, { kind: 'GetTree' });
  assert.equal(logBytes(), 0);
  await erase(second);
  assert.equal(logBytes(), 0);
  assert.ok(!readFileSync(join(dataDir, 'artseal.db')).includes(author));
});
