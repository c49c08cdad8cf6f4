import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  anyFiling,
  fileOne,
  firstPage,
  fulfilledOf,
  noon,
  openGallery,
  openStore,
  painting,
  refused,
  type StoreEngine,
  time,
  toFile,
  toOpen,
} from './fixtures.ts';

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

  test('a filing that fails takes no number and leaves nothing', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const nobody = { callerId: 99, caller: 'nobody' };
    const calls = [by, nobody, by, nobody, by].map((caller) => perform(store, toFile(caller)));
    const settled = await Promise.allSettled(calls);
    assert.deepEqual(
      settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value.filingNo] : [])),
      numbers(1, 3),
    );
    const page = firstPage(10);
    const listed = await perform(store, { kind: 'ListFilings', filter: anyFiling, page });
    assert.equal(listed.items.length, 3);
    assert.equal(await fileOne(store, by), 'AS-2026-000004');
  });

  test('rejected commands leave no gap', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const first = await fileOne(store, by);
    await perform(store, toOpen(by, first));
    const filed: Promise<{ filingNo: string }>[] = [];
    const refusals: Promise<unknown>[] = [];
    for (let round = 0; round < 10; round += 1) {
      refusals.push(perform(store, toOpen(by, first)));
      filed.push(perform(store, toFile(by)));
    }
    assert.equal(await fulfilledOf(refusals, 'ESCROW_ACTIVE'), 0);
    await refused(addPlatform(store, 'gallery'), 'VALIDATION_FAILED');
    assert.deepEqual(
      (await Promise.all(filed)).map(({ filingNo }) => filingNo),
      numbers(2, 10),
    );
  });

  test('two open stores share the numbers', async (t) => {
    const dataDir = temporaryFolder(t);
    const [one, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    const by = await addPlatform(one, 'gallery');
    const filed: string[] = [];
    for (const store of [one, other, other, one, one, other]) {
      filed.push(await fileOne(store, by));
      const artworks = [painting, painting];
      const pair = await Promise.all(
        artworks.map((artwork) => perform(store, { kind: 'FileArtwork', artwork, at: noon, by })),
      );
      filed.push(...pair.map(({ filingNo }) => filingNo));
    }
    assert.deepEqual(filed, numbers(1, 18));
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
