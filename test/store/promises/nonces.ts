import assert from 'node:assert/strict';
import { nonceRetentionS } from '../../../src/store/store.ts';
import type { StoreTests } from './tests.ts';

const start = 1_790_000_000;

/** Spent nonces. */
export function noncePromises({ test }: StoreTests): void {
  test('a nonce can be spent once, by each key', async (store) => {
    const { id } = await store.addPlatform('auction house');
    const spent = [];
    for (const nonce of ['n', 'n', 'N', 'n ']) spent.push(await store.spend(store.gallery.id, nonce));
    for (const nonce of ['n', 'n']) spent.push(await store.spend(id, nonce));
    assert.deepEqual(spent, [true, false, true, true, true, false]);
  });

  test(`a nonce is remembered for ${nonceRetentionS} s, and not much longer`, async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS);
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

  test(`a nonce stays spent if the clock is set back by less than ${nonceRetentionS} s`, async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS);
    for (const shift of [0, 329, 330, 331, 659]) {
      const now = start + shift;
      const nonce = `spent at ${now}`;
      assert.equal(await claim(nonce, now), true);
      for (const back of [1, 330, nonceRetentionS - 1])
        assert.equal(await claim(nonce, now - back), false, `spent at ${now}, ${back} s before`);
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

  test('nonces stay spent when the store is opened again, whatever the clock is set to', async (before) => {
    const spentAt = [start + 3_000, start];
    for (const now of spentAt) assert.equal(await before.spend(1, `spent at ${now}`, now), true);
    await before.close();
    const after = await before.openAgain();
    for (const now of spentAt)
      for (const shift of [600, 1, -600])
        assert.equal(await after.spend(1, `spent at ${now}`, now + shift), false);
  });
}
