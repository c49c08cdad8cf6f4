import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createConcurrencyLimit, createKeyedLimit, type KeyedLimits } from '../../src/lib/concurrency.ts';
import { apiError } from '../support/rejected.ts';

/** A limit, the names of the calls that have started, in order, and what ends them. */
function open(limits: KeyedLimits) {
  const limit = createKeyedLimit<string>(limits);
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const leaves = new Map<string, () => void>();
  /** Calls by name; the letter of a name is its key. */
  const take = async (...names: string[]) => {
    for (const name of names) {
      const taken = limit.take(name.charAt(0), (leave) => leaves.set(name, leave));
      void taken.then((free) => {
        started.push(name);
        ends.set(name, free);
      });
    }
    await nextTurn();
  };
  const end = async (...names: string[]) => {
    for (const name of names) ends.get(name)?.();
    await nextTurn();
  };
  return { limit, started, take, end, leave: (name: string) => leaves.get(name)?.() };
}

test('the calls of a key start in their order, within its limit; other keys do not wait for them', async () => {
  const { started, take, end } = open({ perKey: 2 });
  await take('a1', 'a2', 'a3', 'a4', 'b1');
  assert.deepEqual(started, ['a1', 'a2', 'b1']);
  await end('a2', 'b1');
  assert.deepEqual(started, ['a1', 'a2', 'b1', 'a3']);
  await end('a2', 'a2');
  assert.deepEqual(started.length, 4, 'a slot is freed once');
  await end('a1');
  await take('a5');
  assert.deepEqual(started, ['a1', 'a2', 'b1', 'a3', 'a4']);
});

test('keys take turns if they wait for the total', async () => {
  const { started, take, end } = open({ perKey: 9, total: 1 });
  await take('a1', 'a2', 'a3', 'b1', 'b2', 'c1');
  for (let nth = 0; nth < 6; nth += 1) await end(started[nth] ?? '');
  assert.deepEqual(started, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
});

test('a call that leaves the queue never starts', async () => {
  const { started, take, end, leave } = open({ perKey: 1 });
  await take('a1', 'a2', 'a3', 'b1', 'b2');
  leave('a2');
  leave('b2');
  await end('a1', 'b1');
  await take('b3');
  assert.deepEqual(started, ['a1', 'b1', 'a3', 'b3']);
});

test('a slot is taken only within the limit of the key and the total, and some are kept for other keys', () => {
  const limit = createKeyedLimit<string>({ perKey: 3, total: 6, keptForOthers: 2 });
  const tries = (keys: string) => [...keys].map((key) => limit.tryTake(key) !== undefined);
  const free = limit.tryTake('a');
  assert.deepEqual(tries('aaa'), [true, true, false]);
  assert.deepEqual(tries('bb'), [true, false], 'the last two are kept');
  assert.deepEqual(tries('cde'), [true, true, false]);
  assert.deepEqual([limit.taken(), limit.takenBy('a'), limit.takenBy('e')], [6, 3, 0]);
  free?.();
  free?.();
  assert.deepEqual([limit.taken(), limit.takenBy('a')], [5, 2]);
  assert.deepEqual(tries('ae'), [false, true]);
});

test('the limit is idle when nothing runs and nothing waits', async () => {
  const { limit, take, end } = open({ perKey: 1 });
  await limit.idle();
  await take('a1', 'a2', 'b1');
  let isIdle = false;
  void limit.idle().then(() => {
    isIdle = true;
  });
  await end('a1', 'b1');
  assert.equal(isIdle, false);
  await end('a2');
  assert.equal(isIdle, true);
});

test('a holder at its limit is rejected, and so are all holders when no slot is left', () => {
  const rules = { ofAll: 3, ofEach: 2, tooMany: 'You have two.', full: 'All are taken.' };
  const { enter, taken } = createConcurrencyLimit<string>(rules);
  const leave = enter('a');
  enter('a');
  assert.throws(() => enter('a'), apiError('RATE_LIMITED', /^You have two\.$/));
  enter('b');
  assert.throws(() => enter('b'), apiError('UNAVAILABLE', /^All are taken\./));
  assert.throws(() => enter('a'), apiError('RATE_LIMITED', /^You have two\.$/));
  assert.equal(taken(), 3);
  leave();
  enter('b');
  assert.throws(() => enter('c'), apiError('UNAVAILABLE', /^All are taken\./));
});
