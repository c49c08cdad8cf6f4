import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { openOutgoing, outcome, post, startReceiver } from './receiver.ts';

test('320 connections are kept: others are closed after their response', async (t) => {
  const [count, kept] = [340, 320];
  const held: (() => void)[] = [];
  const { port, sockets } = await startReceiver(t, (_request, response) => {
    held.push(() => response.end());
    if (held.length === count) for (const answer of held) answer();
  });
  const outgoing = openOutgoing(t);
  const posts = Array.from({ length: count }, () => outcome(post(outgoing, `https://127.0.0.1:${port}/`)));
  assert.deepEqual(await Promise.all(posts), Array(count).fill(200));
  await eventually('the others are closed', 60_000, () => sockets.size === kept);
});
