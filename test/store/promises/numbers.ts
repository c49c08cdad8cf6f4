import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { addPlatform, fileOne, openGallery, openStore, type StoreEngine, time, toFile } from './fixtures.ts';

const numbers = (first: number, count: number) =>
  Array.from({ length: count }, (_, place) => `AS-2026-${String(first + place).padStart(6, '0')}`);

/** Filing numbers: consecutive, without gap or double. */
export function numberPromises(engine: StoreEngine): void {
  test('concurrent filings are numbered from 000001 in the order of their calls', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filed = await Promise.all(numbers(1, 50).map(() => perform(store, toFile(by))));
    assert.deepEqual(
      filed.map(({ filingNo }) => filingNo),
      numbers(1, 50),
    );
  });

  test('each year has its own numbers, by the year of the timestamp', async (t) => {
    const { store, by } = await openGallery(t, engine);
    assert.equal(await fileOne(store, by, time('2026-12-31T23:59:59+08:00')), 'AS-2026-000001');
    // Both are still 2026 in UTC.
    assert.equal(await fileOne(store, by, time('2027-01-01T00:00:00+08:00')), 'AS-2027-000001');
    assert.equal(await fileOne(store, by, time('2027-01-01T00:00:01+08:00')), 'AS-2027-000002');
    assert.equal(await fileOne(store, by, time('2026-12-31T23:59:59+00:00')), 'AS-2026-000002');
  });

  test('numbers continue after a restart', async (t) => {
    const dataDir = temporaryFolder(t);
    const before = await openStore(t, engine, dataDir);
    const by = await addPlatform(before, 'gallery');
    await perform(before, toFile(by));
    await before.close();
    const after = await openStore(t, engine, dataDir);
    assert.equal(await fileOne(after, by), 'AS-2026-000002');
  });
}
