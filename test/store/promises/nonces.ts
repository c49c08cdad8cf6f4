import assert from 'node:assert/strict';
import { nonceRetentionS } from '../../../src/store/store.ts';
import type { StoreTests, TestStore } from './tests.ts';

const start = 1_790_000_000;

function claimer(store: TestStore, keyId: number) {
  return (nonce: string, atS: number) => store.spend(keyId, nonce, atS);
}

/** Spent nonces. */
export function noncePromises({ test }: StoreTests): void {
  test('a nonce can be spent once, by each key', async (store) => {
    const first = claimer(store, store.gallery.id);
    const second = claimer(store, (await store.addPlatform('auction house')).id);
    assert.equal(await first('n', start), true);
    assert.equal(await first('n', start), false);
    assert.equal(await first('N', start), true);
    assert.equal(await first('n ', start), true);
    assert.equal(await second('n', start), true);
    assert.equal(await second('n', start), false);
  });

  test(`a nonce is remembered for ${nonceRetentionS} s, and not much longer`, async (store) => {
    const claim = claimer(store, 1);
    let now = start;
    for (const shift of [0, 329, 330, 331, 659]) {
      now += 10_000 + shift;
      const nonce = `spent at ${now}`;
      assert.equal(await claim(nonce, now), true);
      for (const later of [1, 330, nonceRetentionS - 1]) {
        // Other nonces are spent meanwhile, which may sweep.
        assert.equal(await claim(`${now} and ${later}`, now + later), true);
        assert.equal(await claim(nonce, now + later), false, `${later} s after ${now}`);
      }
      assert.equal(await claim(nonce, now + nonceRetentionS + 1), true, `forgotten, spent at ${now}`);
    }
  });

  test('a nonce stays spent when the store is opened again, with a clock set back as well', async (before) => {
    assert.equal(await claimer(before, 1)('n', start), true);
    await before.close();
    const after = claimer(await before.openAgain(), 1);
    assert.equal(await after('n', start + 600), false);
    assert.equal(await after('n', start - 600), false);
  });

  test(`a nonce stays spent if the clock is set back by less than ${nonceRetentionS} s`, async (store) => {
    const claim = claimer(store, 1);
    for (const shift of [0, 329, 330, 331, 659]) {
      const now = start + shift;
      const nonce = `spent at ${now}`;
      assert.equal(await claim(nonce, now), true);
      for (const back of [1, 330, nonceRetentionS - 1])
        assert.equal(await claim(nonce, now - back), false, `spent at ${now}, ${back} s before`);
    }
  });

  test('nonces stay spent if the clock is set ahead by hours and back', async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS, start);
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

  test('nonces spent while the clock is ahead sweep none that are needed once it is set back', async (store) => {
    const claim = (nonce: string, atS: number, sweepAtS = atS) => store.spend(1, nonce, atS, sweepAtS);
    const claimed = (count: number, one: (each: number) => Promise<boolean>) =>
      Promise.all(Array.from({ length: count }, (_, each) => one(each)));
    assert.ok((await claimed(100, (each) => claim(`before ${each}`, start))).every(Boolean));
    assert.ok((await claimed(500, (each) => claim(`ahead ${each}`, start + 10_000, start))).every(Boolean));
    assert.ok(!(await claimed(100, (each) => claim(`before ${each}`, start + 10))).some(Boolean));
  });

  test('a nonce spent after the clock was set back is forgotten at its time', async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS, start);
    assert.equal(await claim('ahead', start + 10_000), true);
    assert.equal(await claim('back', start), true);
    assert.equal(await claim('back', start + nonceRetentionS - 1), false);
    assert.equal(await claim('back', start + nonceRetentionS + 1), true);
  });

  for (const [name, spentAt] of Object.entries({
    'at its time': [start],
    'after the clock was set back': [start + 3_000, start],
  })) {
    test(`a nonce spent ${name} stays spent when the store is opened again`, async (before) => {
      for (const now of spentAt) assert.equal(await claimer(before, 1)(`spent at ${now}`, now), true);
      await before.close();
      const after = await before.openAgain();
      for (const now of spentAt) assert.equal(await claimer(after, 1)(`spent at ${now}`, now + 1), false);
    });
  }
}
