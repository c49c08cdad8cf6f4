import assert from 'node:assert/strict';
import { time, toFile } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

const numbers = (first: number, count: number) =>
  Array.from({ length: count }, (_, place) => `AS-2026-${String(first + place).padStart(6, '0')}`);

/** Filing numbers: consecutive, without gap or double. */
export function numberPromises({ test }: StoreTests): void {
  test('concurrent filings are numbered from 000001 in the order of their calls', async (store) => {
    const filed = await Promise.all(numbers(1, 50).map(() => store.perform(toFile(store.gallery))));
    assert.deepEqual(
      filed.map(({ filingNo }) => filingNo),
      numbers(1, 50),
    );
  });

  test('each year has its own numbers, by the year of the timestamp', async (store) => {
    const by = store.gallery;
    assert.equal(await store.fileOne(by, time('2026-12-31T23:59:59+08:00')), 'AS-2026-000001');
    // Both are still 2026 in UTC.
    assert.equal(await store.fileOne(by, time('2027-01-01T00:00:00+08:00')), 'AS-2027-000001');
    assert.equal(await store.fileOne(by, time('2027-01-01T00:00:01+08:00')), 'AS-2027-000002');
    assert.equal(await store.fileOne(by, time('2026-12-31T23:59:59+00:00')), 'AS-2026-000002');
  });

  test('numbers continue after a restart', async (before) => {
    await before.perform(toFile(before.gallery));
    await before.close();
    const after = await before.openAgain();
    assert.equal(await after.fileOne(before.gallery), 'AS-2026-000002');
  });
}
