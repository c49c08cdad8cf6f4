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

test('few reads run at a time, some wait, and further ones are rejected at once', async () => {
  const { execute, held, answer } = createSlowStore();
  const read = createOpenReads(execute, { concurrent: 2, queued: 3 });
  const ask = () => read({ kind: 'GetTree' });
  const taken = Array.from({ length: 5 }, ask);
  await assert.rejects(ask(), apiError('UNAVAILABLE', /^Too many read the evidence log/));
  assert.equal(held.length, 2);
  await answer(0);
  await taken[0];
  taken.push(ask());
  await assert.rejects(ask(), apiError('UNAVAILABLE'));
  for (let at = 1; at < 6; at += 1) {
    await answer(at);
    await taken[at];
    assert.ok(held.length <= at + 3);
  }
  assert.equal(held.length, 6);
});

test('a read that fails frees its slot', async () => {
  const { execute, answer } = createSlowStore();
  const read = createOpenReads(execute, { concurrent: 1, queued: 1 });
  const [failing, next] = [read({ kind: 'GetTree' }), read({ kind: 'GetTree' })];
  await Promise.all([answer(0, new Error('gone')), assert.rejects(failing, /gone/)]);
  await answer(1);
  await next;
  const last = read({ kind: 'GetTree' });
  await answer(2);
  await last;
});
