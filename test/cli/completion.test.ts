import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runHere } from '../support/artseal.ts';

test('the choices of usage lines are completed, and no name of a value', async () => {
  const { printed } = await runHere(['completion', 'bash'], {});
  const choices = Array.from(
    printed.join('\n').matchAll(/ --[a-z-]+'\) next='([^']+)'/g),
    ([, words]) => words,
  );
  assert.deepEqual(
    new Set(choices),
    new Set([
      'TRIAL STANDARD ENTERPRISE',
      'unlimited',
      'none',
      'BUYER SELLER',
      'ENABLED DISABLED',
      'PENDING WAITING DELIVERED FAILED',
    ]),
  );
});
