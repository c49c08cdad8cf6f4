import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTypedTransport } from '../../src/client/typed.ts';
import { artwork } from '../support/samples.ts';
import { typedClients } from '../support/typed-clients.ts';
import { startWeighedService, type Weight } from '../support/weighed-service.ts';

/** Filings for the warm-up, such as compiled code, and filings that are measured. */
const [first, filings] = [2_000, 6_000];
const underWay = 64;
/** The allowed growth, in bytes: far less than the filings and their responses. Of the last calls, 250 bytes each are kept. */
const grownMax = (200 + 250) * filings;

const megabytes = (bytes: number) => `${Math.round(bytes / 1_048_576)} MiB`;
const described = ({ held, heldInThread, resident }: Weight) =>
  `${megabytes(held)} alive in the main thread, ${megabytes(heldInThread)} in the store's, ${megabytes(resident)} resident`;

test('requests to the thread of the store leave no memory', {
  timeout: 300_000,
}, async (t) => {
  const { internalUrl, token, weigh } = await startWeighedService(t);
  const { filings: client } = typedClients(createTypedTransport(internalUrl, token));
  const price = BigInt(artwork.price);
  const file = async (count: number) => {
    let left = count;
    const work = async () => {
      for (; left > 0; left -= 1) await client.createFiling({ ...artwork, price });
    };
    await Promise.all(Array.from({ length: underWay }, work));
  };
  t.diagnostic(`idle: ${described(await weigh())}`);
  await file(first);
  const before = await weigh();
  await file(filings);
  const after = await weigh();
  t.diagnostic(`after ${filings} filings: ${described(after)}`);
  for (const part of ['held', 'heldInThread'] as const) {
    const grown = after[part] - before[part];
    t.diagnostic(`${part} grew by ${grown} bytes`);
    assert.ok(grown <= grownMax, `${part} grew by ${grown} bytes`);
  }
});

test('the last calls are kept without the targets that were sent', { timeout: 300_000 }, async (t) => {
  const { publicUrl, weigh } = await startWeighedService(t);
  const long = 'x'.repeat(15_000);
  const read = async (count: number) => {
    for (let left = count; left > 0; left -= 1) {
      const response = await fetch(`${publicUrl}/log/checkpoint?${left}${long}`);
      assert.equal(response.status, 400, await response.text());
    }
  };
  const calls = 1_000;
  await read(calls);
  const before = await weigh();
  await read(calls);
  const grown = (await weigh()).held - before.held;
  t.diagnostic(`held grew by ${grown} bytes`);
  assert.ok(grown <= 1_000 * calls, `held grew by ${grown} bytes`);
});
