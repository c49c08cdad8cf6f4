import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

test('a reflection stream keeps no memory of the requests that it has answered', async () => {
  const requests = 10_000;
  // A small heap of its own, which is searched quickly.
  const worker = new Worker(new URL('children/answer-many.ts', import.meta.url), { workerData: requests });
  const [held] = await once(worker, 'message');
  assert.ok(held < requests / 2, `${held} promises more are held`);
});
