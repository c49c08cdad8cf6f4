import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/domain/reason.ts';
import { createConcurrencyLimit } from '../../src/lib/concurrency.ts';

const rules = { ofAll: 3, ofEach: 2, tooMany: 'You have two.', full: 'All are taken.' };

const rejected = (reason: string, message: string) => (error: unknown) =>
  error instanceof ApiError && error.reason === reason && error.message === message;

test('a holder at its limit is rejected, and so are all holders when no slot is left', () => {
  const { enter, taken } = createConcurrencyLimit<string>(rules);
  const leave = enter('a');
  enter('a');
  assert.throws(() => enter('a'), rejected('RATE_LIMITED', 'You have two.'));
  enter('b');
  assert.throws(() => enter('b'), rejected('UNAVAILABLE', 'All are taken.'));
  assert.throws(() => enter('a'), rejected('RATE_LIMITED', 'You have two.'));
  assert.equal(taken(), 3);
  leave();
  assert.equal(taken(), 2);
  enter('b');
  assert.throws(() => enter('c'), rejected('UNAVAILABLE', 'All are taken.'));
});

test('a holder that left all slots can take as many again', () => {
  const { enter, taken } = createConcurrencyLimit<number>(rules);
  for (let time = 0; time < 3; time += 1) {
    const leaves = [enter(1), enter(1)];
    assert.throws(() => enter(1), rejected('RATE_LIMITED', 'You have two.'));
    for (const leave of leaves) leave();
    assert.equal(taken(), 0);
  }
});
