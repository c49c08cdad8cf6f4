import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createReadQueue } from '../../../src/http/connect/read-queue.ts';
import type { AnyResponse } from '../../../src/http/listen/any-http.ts';

const readsAtOnceMax = 64;

/** FairQueue, the calls whose turns they are, and what ends these. */
function openTurns() {
  const turns = createReadQueue();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (caller: string, name: string) => {
    const response = new EventEmitter() as AnyResponse;
    void turns.take(caller, response).then((end) => {
      begun.push(name);
      ends.set(name, end);
    });
    return response;
  };
  return { take, begun, end: (name: string) => ends.get(name)?.() };
}

test('calls of a caller that read begin in their order, so many at a time; those of others do not wait for them', async () => {
  const { take, begun, end } = openTurns();
  const names = Array.from({ length: readsAtOnceMax + 2 }, (_, nth) => `a${nth}`);
  for (const name of names) take('a', name);
  take('b', 'b0');
  await turn();
  assert.deepEqual(begun, [...names.slice(0, readsAtOnceMax), 'b0']);
  // A turn ends once, however often that is said.
  for (const name of ['a0', 'a0', 'a1', 'a1']) end(name);
  await turn();
  assert.deepEqual(begun, [...names.slice(0, readsAtOnceMax), 'b0', ...names.slice(readsAtOnceMax)]);
  take('a', 'last');
  await turn();
  assert.equal(begun.includes('last'), false);
});

test('a call never begins whose response is closed while it waits', async () => {
  const { take, begun, end } = openTurns();
  for (let nth = 0; nth < readsAtOnceMax; nth += 1) take('a', `a${nth}`);
  take('a', 'gone').emit('close');
  take('a', 'there');
  await turn();
  end('a0');
  await turn();
  assert.deepEqual(begun.slice(readsAtOnceMax), ['there']);
});
