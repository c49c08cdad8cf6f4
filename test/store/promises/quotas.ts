import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { openStore, type StoreEngine } from './fixtures.ts';

const [november, december] = ['2026-11', '2026-12'];

/** Calls counted in a month. */
export function quotaPromises(engine: StoreEngine): void {
  test('calls at once are all counted', async (t) => {
    const { admission } = await openStore(t, engine);
    await Promise.all(Array.from({ length: 20 }, () => admission.countCall(1, november)));
    assert.equal(await admission.callsIn(1, november), 20);
  });

  test('each caller and each month counts for itself', async (t) => {
    const { admission } = await openStore(t, engine);
    await admission.countCall(1, november);
    await admission.countCall(1, november);
    await admission.countCall(2, november);
    await admission.countCall(1, december);
    const counted = [];
    for (const caller of [1, 2, 3])
      for (const month of [november, december]) counted.push(await admission.callsIn(caller, month));
    assert.deepEqual(counted, [2, 1, 1, 0, 0, 0]);
  });

  test('the count survives opening again, and other open stores see it', async (t) => {
    const dataDir = temporaryFolder(t);
    const [before, after] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await before.admission.countCall(1, november);
    await before.durable();
    assert.equal(await after.admission.callsIn(1, november), 1);
    await before.close();
    await after.admission.countCall(1, november);
    await after.close();
    const again = await openStore(t, engine, dataDir);
    assert.equal(await again.admission.callsIn(1, november), 2);
  });
}
