import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenReads } from '../../../src/evidence/log/tiles.ts';
import type { Execute } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { apiError } from '../../support/rejected.ts';

/** A store that responds when the test says so. */
function createSlowStore() {
  const held: PromiseWithResolvers<void>[] = [];
  const execute = (async () => {
    const answer = Promise.withResolvers<void>();
    held.push(answer);
    await answer.promise;
  }) as unknown as Execute;
  /** Responds to the n-th command, from 0. */
  const answer = async (nth: number, error?: Error) => {
    const { resolve, reject } = await eventually('a command arrives', 60_000, () => held[nth]);
    if (error === undefined) resolve();
    else reject(error);
  };
  return { execute, held, answer };
}

test('few reads run at a time, some wait, and further ones are rejected until one has ended or failed', async () => {
  const { execute, held, answer } = createSlowStore();
  const read = createOpenReads(execute, { concurrent: 2, queued: 2 });
  const ask = () => read({ kind: 'GetTree' });
  const taken = [ask(), assert.rejects(ask(), /gone/), ask(), ask()];
  await assert.rejects(ask(), apiError('UNAVAILABLE', /^Too many read the evidence log/));
  assert.equal(held.length, 2);
  await answer(1, new Error('gone'));
  await taken[1];
  taken.push(ask());
  await assert.rejects(ask(), apiError('UNAVAILABLE'));
  for (const nth of [0, 2, 3, 4]) await answer(nth);
  await Promise.all(taken);
  assert.equal(held.length, 5);
});
