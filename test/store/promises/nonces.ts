import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nonceRetentionS, type Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { addPlatform, openStore, type StoreEngine, spend } from './fixtures.ts';

const start = 1_790_000_000;

function claimer(store: Store, keyId: number) {
  return (nonce: string, atS: number) => spend(store, keyId, nonce, atS);
}

/** Spent nonces. */
export function noncePromises(engine: StoreEngine): void {
  test('a nonce is good for one claim, each key having its own', async (t) => {
    const store = await openStore(t, engine);
    const first = claimer(store, (await addPlatform(store, 'gallery')).id);
    const second = claimer(store, (await addPlatform(store, 'auction house')).id);
    assert.equal(await first('n', start), true);
    assert.equal(await first('n', start), false);
    assert.equal(await first('N', start), true);
    assert.equal(await first('n ', start), true);
    assert.equal(await second('n', start), true);
    assert.equal(await second('n', start), false);
  });

  test('of claims made at once, one is granted', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store, 1);
    const claims = await Promise.all([1, 2, 3, 4].map(() => claim('n', start)));
    assert.deepEqual(claims, [true, false, false, false]);
  });

  test(`a nonce is remembered for ${nonceRetentionS} s, whenever it was spent, and not much longer`, async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store, 1);
    let now = start;
    for (const shift of [0, 1, 100, 329, 330, 331, 659]) {
      now += 10_000 + shift;
      const nonce = `spent at ${now}`;
      assert.equal(await claim(nonce, now), true);
      for (const later of [1, 329, 330, 331, 658, nonceRetentionS - 1]) {
        // Others are spent as time goes by, and may sweep.
        assert.equal(await claim(`${now} and ${later}`, now + later), true);
        assert.equal(await claim(nonce, now + later), false, `${later} s after ${now}`);
      }
      assert.equal(await claim(nonce, now + nonceRetentionS + 1), true, `forgotten, spent at ${now}`);
    }
  });

  test('a rejected nonce is not remembered longer', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store, 1);
    assert.equal(await claim('n', start), true);
    assert.equal(await claim('n', start + 600), false);
    assert.equal(await claim('n', start + nonceRetentionS + 1), true);
  });

  test('a nonce stays spent when the store is opened again, with a clock set back as well', async (t) => {
    const dataDir = temporaryFolder(t);
    const before = await openStore(t, engine, dataDir);
    assert.equal(await claimer(before, 1)('n', start), true);
    await before.close();
    const after = claimer(await openStore(t, engine, dataDir), 1);
    assert.equal(await after('n', start + 600), false);
    assert.equal(await after('n', start - 600), false);
  });

  for (const shift of [0, 1, 100, 329, 330, 331, 659]) {
    test(`a clock set back by less than ${nonceRetentionS} s leaves a nonce spent at ${start + shift} spent`, async (t) => {
      const store = await openStore(t, engine);
      const claim = claimer(store, 1);
      const now = start + shift;
      assert.equal(await claim('n', now), true);
      for (const back of [1, 329, 330, 331, nonceRetentionS - 1]) {
        assert.equal(await claim('n', now - back), false, `${back} s before`);
      }
    });
  }

  test('nonces stay spent while the clock is set ahead by hours and back, each at its own time', async (t) => {
    const store = await openStore(t, engine);
    const claim = (nonce: string, atS: number) => spend(store, 1, nonce, atS, start);
    const ahead = start + 5 * 3_600;
    assert.equal(await claim('before', start), true);
    assert.equal(await claim('ahead', ahead), true);
    assert.equal(await claim('after', start + 10), true);
    for (const later of [0, 10, 300, 659]) {
      assert.equal(await claim('ahead', ahead + later), false, `ahead, ${later} s later`);
      assert.equal(await claim('before', start + later), false, `before, ${later} s later`);
      assert.equal(await claim('after', start + later), false, `after, ${later} s later`);
    }
  });

  test('what is spent while the clock may have to be set back sweeps nothing that is needed then', async (t) => {
    const store = await openStore(t, engine);
    const claim = (nonce: string, atS: number, sweepAtS = atS) => spend(store, 1, nonce, atS, sweepAtS);
    for (let each = 0; each < 100; each += 1) assert.equal(await claim(`before ${each}`, start), true);
    for (let each = 0; each < 500; each += 1)
      assert.equal(await claim(`ahead ${each}`, start + 10_000, start), true);
    for (let each = 0; each < 100; each += 1) assert.equal(await claim(`before ${each}`, start + 10), false);
  });

  test('a nonce spent after the clock was set back is forgotten in its time', async (t) => {
    const store = await openStore(t, engine);
    const claim = (nonce: string, atS: number) => spend(store, 1, nonce, atS, start);
    assert.equal(await claim('ahead', start + 10_000), true);
    assert.equal(await claim('back', start), true);
    assert.equal(await claim('back', start + nonceRetentionS - 1), false);
    assert.equal(await claim('back', start + nonceRetentionS + 1), true);
  });

  for (const [name, spentAt] of Object.entries({
    'in good time': [start],
    'after the clock was set back': [start + 3_000, start],
  })) {
    test(`a nonce spent ${name} stays spent when another process takes over`, async (t) => {
      const dataDir = temporaryFolder(t);
      const before = await openStore(t, engine, dataDir);
      const after = await openStore(t, engine, dataDir);
      await before.beginServing();
      for (const now of spentAt) assert.equal(await claimer(before, 1)(`spent at ${now}`, now), true);
      await before.close();
      await after.beginServing();
      for (const now of spentAt) assert.equal(await claimer(after, 1)(`spent at ${now}`, now + 1), false);
    });
  }
}
