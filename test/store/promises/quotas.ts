import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { openStore, type StoreEngine } from './fixtures.ts';

const [november, december] = ['2026-11', '2026-12'];

/** Calls counted in a month. */
export function quotaPromises(engine: StoreEngine): void {
  test('calls are counted up to the quota and no further', async (t) => {
    const { admission } = await openStore(t, engine);
    const counted: (number | undefined)[] = [];
    for (let call = 0; call < 5; call += 1) counted.push(await admission.countCall(1, november, 3));
    assert.deepEqual(counted, [1, 2, 3, undefined, undefined]);
    assert.equal(await admission.callsIn(1, november), 3);
  });

  test('of calls at once, as many are counted as the quota allows', async (t) => {
    const { admission } = await openStore(t, engine);
    const counted = await Promise.all(Array.from({ length: 20 }, () => admission.countCall(1, november, 7)));
    assert.deepEqual(
      counted.filter((calls) => calls !== undefined),
      [1, 2, 3, 4, 5, 6, 7],
    );
  });

  test('without a quota every call is counted', async (t) => {
    const { admission } = await openStore(t, engine);
    for (const expected of [1, 2, 3]) {
      assert.equal(await admission.countCall(1, november, undefined), expected);
    }
  });

  test('each caller and each month counts for itself', async (t) => {
    const { admission } = await openStore(t, engine);
    assert.equal(await admission.countCall(1, november, 1), 1);
    assert.equal(await admission.countCall(2, november, 1), 1);
    assert.equal(await admission.countCall(1, december, 1), 1);
    assert.equal(await admission.countCall(1, november, 1), undefined);
    assert.deepEqual([await admission.callsIn(2, december), await admission.callsIn(3, november)], [0, 0]);
  });

  test('a call given back can be made again; there is none below zero', async (t) => {
    const { admission } = await openStore(t, engine);
    await admission.giveBackCall(1, november);
    assert.equal(await admission.callsIn(1, november), 0);
    assert.equal(await admission.countCall(1, november, 1), 1);
    await admission.giveBackCall(1, november);
    await admission.giveBackCall(1, november);
    assert.equal(await admission.callsIn(1, november), 0);
    assert.equal(await admission.countCall(1, november, 1), 1);
    assert.equal(await admission.countCall(1, november, 1), undefined);
  });

  test('a quota that was lowered below what is counted counts nothing more', async (t) => {
    const { admission } = await openStore(t, engine);
    for (let call = 0; call < 3; call += 1) await admission.countCall(1, november, 10);
    assert.equal(await admission.countCall(1, november, 2), undefined);
    assert.equal(await admission.callsIn(1, november), 3);
  });

  test('the count survives opening again, and other open stores see it', async (t) => {
    const dataDir = temporaryFolder(t);
    const [before, after] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    assert.equal(await before.admission.countCall(1, november, 3), 1);
    await before.durable();
    assert.equal(await after.admission.callsIn(1, november), 1);
    await before.close();
    assert.equal(await after.admission.countCall(1, november, 3), 2);
    await after.close();
    const again = await openStore(t, engine, dataDir);
    assert.equal(await again.admission.countCall(1, november, 3), 3);
    assert.equal(await again.admission.countCall(1, november, 3), undefined);
  });
}
