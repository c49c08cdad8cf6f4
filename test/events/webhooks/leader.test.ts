import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Attempt, AttemptResult } from '../../../src/events/webhooks/attempt.ts';
import { sendingLimits } from '../../../src/events/webhooks/limits.ts';
import { perform } from '../../../src/store/store.ts';
import { nameOf } from '../../store/promises/endpoints.ts';
import { addPlatform, fileOne, noon } from '../../store/promises/fixtures.ts';
import { addEndpoint, startSending } from './sending.ts';

/** Another instance takes over within this time. */
const takeoverMs = 15_000;

const arrived: AttemptResult = { isDelivered: true, httpStatus: 204, answer: null, error: null };

/** Two instances on one store, and an endpoint. The test says which one leads. */
async function openTwo(t: TestContext) {
  const arrivals: [name: string, sequence: number][] = [];
  let leader = 'one';
  /** Attempts of the first instance end when this resolves. */
  const ended = Promise.withResolvers<void>();
  const attemptOf =
    (name: string): Attempt =>
    async (_, { body }) => {
      arrivals.push([name, JSON.parse(body).data.sequence]);
      if (name === 'one') await ended.promise;
      return arrived;
    };
  const optionsOf = (name: string) => ({ attempt: attemptOf(name), leads: () => leader === name });
  const limits = { listEveryMs: sendingLimits.listSharedEveryMs };
  const one = await startSending(t, { ...optionsOf('one'), limits });
  const { store, clock } = one;
  const other = await startSending(t, { ...optionsOf('other'), limits, store, clock });
  const gallery = await addPlatform(store, 'gallery');
  const webhook = await addEndpoint(store, gallery);
  one.sender.look();
  return {
    ...{ store, one, other, gallery, webhook, arrivals, end: ended.resolve },
    arrivalsAt: (name: string) => arrivals.filter(([at]) => at === name).map(([, sequence]) => sequence),
    lead: (name: string) => {
      leader = name;
    },
  };
}

test('an instance that takes over sends what the one before it had not sent, and that one sends nothing more', async (t) => {
  const { store, one, other, gallery, arrivalsAt, lead, end } = await openTwo(t);
  for (let filed = 0; filed < 8; filed += 1) await fileOne(store, gallery);
  await one.until(() => {
    one.clock.advance(10);
    return arrivalsAt('one').length === 4;
  }, 'atOnce');
  await other.pass(takeoverMs);
  assert.deepEqual(arrivalsAt('other'), [], 'it does not lead');
  lead('other');
  end();
  await other.pass(takeoverMs);
  assert.deepEqual(arrivalsAt('one').toSorted(), [1, 2, 3, 4], 'what it had claimed is not sent');
  assert.deepEqual(arrivalsAt('other').toSorted(), [5, 6, 7, 8]);
  lead('one');
  await one.pass(takeoverMs);
  await fileOne(store, gallery);
  await one.until(() => arrivalsAt('one').length === 5);
  assert.deepEqual([arrivalsAt('one').at(-1), arrivalsAt('other').length], [9, 4]);
});

test('what another instance changes reaches the one that leads within a second', async (t) => {
  const { store, one, gallery, webhook, arrivals, end } = await openTwo(t);
  end();
  await fileOne(store, gallery);
  await one.until(() => arrivals.length === 1);
  await one.pass(takeoverMs);
  const again = { kind: 'Redeliver', ...nameOf(webhook), which: { sequence: 1 }, nowMs: noon.atMs } as const;
  await perform(store, again);
  await one.pass(1_000);
  assert.equal(arrivals.length, 2);
  await perform(store, { kind: 'ChangeWebhook', ...nameOf(webhook), change: { status: 'DISABLED' } });
  const added = await addEndpoint(store, gallery);
  await one.pass(1_000);
  await fileOne(store, gallery);
  await one.until(() => arrivals.length === 3, 'atOnce');
  assert.equal((await perform(store, { kind: 'FindWebhook', ...nameOf(added) })).failingSinceS, null);
});
