import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Ahead, createBatcher } from '../../src/store/engine/batcher.ts';
import type { Reply } from '../../src/store/engine/failure.ts';
import type { Command, StoreRequest } from '../../src/store/store.ts';
import { artwork } from '../support/samples.ts';
import { firstPage, refused } from './promises/fixtures.ts';

const waitingMax = 10_000;
const worthwhile = 32;
const batchMax = 256;

const done: Reply = { outcome: { kind: 'DONE', result: undefined, isReplay: false } };

/** A batcher whose batches end when the gate opens, or one by one, and the shares and commands of each batch. */
function openGated(ahead?: Ahead) {
  const gate = Promise.withResolvers<void>();
  const ending: (() => void)[] = [];
  const batches: string[][] = [];
  const batcher = createBatcher(async (requests) => {
    batches.push(requests.map(({ share, effect }) => `${share} ${effect?.kind ?? 'Admit'}`));
    await Promise.race([gate.promise, new Promise<void>((resolve) => ending.push(resolve))]);
    return requests.map(() => done);
  }, ahead);
  const submit = (count: number, share = 0, effect?: Command) =>
    Array.from({ length: count }, () => batcher.execute({ share, effect }));
  const sizes = () => batches.map(({ length }) => length);
  /** Ends the first batch, and waits until others are sent. */
  const endFirst = async () => {
    ending.shift()?.();
    for (let turns = 0; turns < 2; turns += 1) await turn();
  };
  return { batches, sizes, submit, endFirst, open: () => gate.resolve() };
}

test('requests of one turn are one batch, and so are all that arrive while it is executed', async () => {
  const { sizes, submit, open } = openGated();
  const taken = [];
  for (const count of [3, 4, 2, 1]) {
    taken.push(...submit(count));
    await turn();
    assert.deepEqual(sizes(), [3]);
  }
  open();
  await Promise.all(taken);
  assert.deepEqual(sizes(), [3, 7]);
});

test('an idle engine gets at once the requests that are worth an fsync, and then the rest of the turn', async () => {
  const { sizes, submit, open } = openGated();
  const taken = submit(worthwhile - 1);
  assert.deepEqual(sizes(), []);
  taken.push(...submit(worthwhile + 1));
  assert.deepEqual(sizes(), [worthwhile]);
  await turn();
  assert.deepEqual(sizes(), [worthwhile]);
  open();
  await Promise.all(taken);
  assert.deepEqual(sizes(), [worthwhile, worthwhile]);
});

test('a batch costs at most 256, and the rest follow', async () => {
  const { sizes, submit, open } = openGated();
  open();
  await Promise.all(submit(2 * batchMax + 1));
  assert.deepEqual(sizes(), [worthwhile, batchMax, batchMax + 1 - worthwhile]);
});

test('an engine that takes batches ahead gets those of each turn, up to the cost of one batch', async () => {
  const { sizes, submit, endFirst, open } = openGated({ takes: true });
  const taken = [];
  for (const count of [3, 4, 2]) {
    taken.push(...submit(count));
    await turn();
  }
  assert.deepEqual(sizes(), [3, 4, 2]);
  taken.push(...submit(batchMax));
  await turn();
  const sent = () => sizes().reduce((sum, size) => sum + size, 0);
  assert.equal(sent(), batchMax);
  await endFirst();
  assert.equal(sent(), batchMax + 3);
  open();
  await Promise.all(taken);
  assert.equal(sent(), taken.length);
});

test('filings that wait get the time and the clock check of the newest, unless the clock was set back', async () => {
  const sent: (readonly [number, number | undefined])[] = [];
  const { execute } = createBatcher(async (requests) =>
    requests.map(({ effect }) => {
      if (effect?.kind === 'FileArtwork') sent.push([effect.at.atMs, effect.clockSetByS]);
      return done;
    }),
  );
  const file = (atMs: number, clockSetByS: number) =>
    execute({
      effect: {
        ...{ kind: 'FileArtwork', artwork: { ...artwork, price: 1n }, clockSetByS },
        ...{
          at: { atMs, timestamp: String(Math.floor(atMs / 1_000)) },
          by: { callerId: 1, caller: 'gallery' },
        },
      },
    });
  await Promise.all([file(1_000, 1), file(60_000, 2), file(60_900, 3)]);
  await Promise.all([file(70_000, 4), file(1_500, 5)]);
  assert.deepEqual(sent, [
    [60_900, 3],
    // Records have whole seconds.
    [60_000, 2],
    [60_900, 3],
    [70_000, 4],
    [1_500, 5],
  ]);
});

const webhook = { webhookId: 'wh_0', owner: 1 };
const expensive: Record<string, Command> = {
  'long pages': {
    kind: 'ListFilings',
    filter: { owner: 1, year: undefined },
    page: firstPage(),
  },
  'redelivery of many events': { kind: 'Redeliver', ...webhook, which: { after: 0, upTo: 9_900 }, nowMs: 0 },
  'deletion of many deliveries': { kind: 'DeleteWebhook', ...webhook },
};

for (const [what, command] of Object.entries(expensive)) {
  test(`a call waits only for the batch under way, although another caller has many requests: ${what}`, async () => {
    const { batches, submit, open } = openGated();
    const many = submit(100, 1, command);
    await turn();
    const one = submit(1, 2);
    open();
    await Promise.all([...many, ...one]);
    const own = `1 ${command.kind}`;
    assert.deepEqual(batches.slice(0, 4), [[own], ['2 Admit'], [own], [own]]);
  });
}

test('an engine that takes batches ahead gets a request that costs much alone, and later ones after it', async () => {
  const { batches, submit, endFirst, open } = openGated({ takes: true });
  const command = expensive['long pages'] ?? assert.fail();
  const taken = submit(1, 1);
  await turn();
  taken.push(...submit(1, 1, command));
  await turn();
  taken.push(...submit(1, 2));
  await turn();
  const [light, heavy, later] = [['1 Admit'], ['1 ListFilings'], ['2 Admit', '2 Admit']];
  assert.deepEqual(batches, [light]);
  await endFirst();
  assert.deepEqual(batches, [light, heavy]);
  taken.push(...submit(1, 2));
  await turn();
  assert.deepEqual(batches, [light, heavy]);
  await endFirst();
  assert.deepEqual(batches, [light, heavy, later]);
  open();
  await Promise.all(taken);
});

test('a batch that waited before it began has what came meanwhile, up to its cost', async () => {
  const gate = Promise.withResolvers<void>();
  const sizes: number[] = [];
  const { execute } = createBatcher(async (_requests, _storing, extended) => {
    await gate.promise;
    const requests = extended();
    sizes.push(requests.length);
    return requests.map(() => done);
  });
  const first = execute({});
  await turn();
  const taken = Array.from({ length: batchMax }, () => execute({}));
  gate.resolve();
  await Promise.all([first, ...taken]);
  assert.deepEqual(sizes, [batchMax, 1]);
});

test('too many waiting requests are rejected at once with UNAVAILABLE, and earlier ones get replies', async () => {
  const { submit, open } = openGated();
  const taken = submit(1);
  await turn();
  taken.push(...submit(waitingMax));
  await Promise.all(submit(3).map((beyond) => refused(beyond, 'UNAVAILABLE')));
  open();
  await Promise.all(taken);
  await Promise.all(submit(1));
});

test('requests of a batch that fails or gets no reply are rejected, and later ones are executed', async () => {
  const answers: ((requests: readonly StoreRequest[]) => readonly Reply[])[] = [
    () => {
      throw new Error('The thread died.');
    },
    () => [],
    () => [
      { failure: { isUnavailable: true, message: 'Full.', cause: 'disk full' } },
      { failure: { isUnavailable: false, message: 'Broken.', cause: 'Error: Broken.\n    at there' } },
    ],
    (requests) => requests.map(() => done),
  ];
  const { execute } = createBatcher(async (requests) => answers.shift()?.(requests) ?? []);
  const pair = () => [execute({}), execute({})] as const;
  await Promise.all(pair().map((lost) => assert.rejects(lost, /^Error: The thread died\.$/)));
  await Promise.all(pair().map((left) => refused(left, 'UNAVAILABLE')));
  const [full, broken] = pair();
  await Promise.all([
    refused(full, 'UNAVAILABLE'),
    assert.rejects(
      full,
      (error: Error) => error.cause instanceof Error && error.cause.message === 'disk full',
    ),
    assert.rejects(broken, { message: 'Broken.', stack: 'Error: Broken.\n    at there' }),
  ]);
  assert.deepEqual(await Promise.all(pair()), [done, done]);
});

test('requests that a batch did not execute are sent again before later ones', async () => {
  const sent: number[] = [];
  const nameOf = ({ admission }: StoreRequest) => admission?.nowS ?? 0;
  const { execute } = createBatcher(async (requests) => {
    sent.push(...requests.slice(0, 2).map(nameOf));
    return [done, done].slice(0, requests.length);
  });
  await Promise.all([1, 2, 3, 4, 5].map((nowS) => execute({ admission: { nowS } })));
  assert.deepEqual(sent, [1, 2, 3, 4, 5]);
});

test('while a batch is stored, the next one is read ahead, if enough requests wait', async () => {
  const gate = Promise.withResolvers<void>();
  const steps: string[] = [];
  const noted = (step: string, { length }: readonly StoreRequest[]) => steps.push(`${step} ${length}`);
  let storing = () => {};
  const { execute } = createBatcher(
    async (requests, whenStoring) => {
      noted('send', requests);
      storing = whenStoring;
      await gate.promise;
      return requests.map(() => done);
    },
    { read: (requests) => noted('read', requests) },
  );
  const submit = (count: number) => Array.from({ length: count }, () => execute({}));
  const taken = submit(worthwhile);
  taken.push(...submit(worthwhile - 1));
  storing();
  assert.deepEqual(steps, ['send 32']);
  taken.push(...submit(1 + worthwhile));
  assert.deepEqual(steps, ['send 32', 'read 32'], 'one batch is read ahead at a time');
  gate.resolve();
  await Promise.all(taken);
  assert.deepEqual(steps, ['send 32', 'read 32', 'send 32', 'send 32']);
});
