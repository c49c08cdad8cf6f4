import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createBatcher } from '../../src/store/sqlite/batcher.ts';
import type { Reply } from '../../src/store/sqlite/call-transaction.ts';
import { openCore } from '../../src/store/sqlite/core.ts';
import type { Command, StoreRequest } from '../../src/store/store.ts';
import { artwork } from '../support/samples.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { firstPage, refused, sandbox } from './promises/fixtures.ts';

const waitingMax = 10_000;
/** What a batch costs at most; a unit without an effect costs 1. */
const batchMax = 256;
const worthwhile = 32;

/** A batcher before a core that begins when the gate opens, and the sizes of the batches that it was given. */
function openGated(t: TestContext) {
  const core = openCore({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => core.close());
  const gate = Promise.withResolvers<void>();
  const sizes: number[] = [];
  const batcher = createBatcher(async (units) => {
    sizes.push(units.length);
    await gate.promise;
    return core.executeBatch(units);
  });
  const submit = (count: number) => Array.from({ length: count }, () => batcher.execute({}));
  return { batcher, sizes, submit, open: () => gate.resolve() };
}

test('units of one turn are one batch, and so are all that come while it is under way', async (t) => {
  const { sizes, submit, open } = openGated(t);
  const taken = [...submit(3)];
  await turn();
  assert.deepEqual(sizes, [3]);
  taken.push(...submit(4));
  await turn();
  taken.push(...submit(2));
  await turn();
  taken.push(...submit(1));
  await turn();
  assert.deepEqual(sizes, [3]);
  open();
  await Promise.all(taken);
  assert.deepEqual(sizes, [3, 7]);
});

test('an engine that idles is given at once what is worth an fsync, and the rest of the turn behind it', async (t) => {
  const { sizes, submit, open } = openGated(t);
  const taken = submit(worthwhile - 1);
  assert.deepEqual(sizes, []);
  taken.push(...submit(worthwhile + 1));
  assert.deepEqual(sizes, [worthwhile]);
  await turn();
  assert.deepEqual(sizes, [worthwhile]);
  open();
  await Promise.all(taken);
  assert.deepEqual(sizes, [worthwhile, worthwhile]);
});

test('a batch costs so much at most, and the rest follow', async (t) => {
  const { sizes, submit, open } = openGated(t);
  open();
  await Promise.all(submit(2 * batchMax + 1));
  assert.deepEqual(sizes, [worthwhile, batchMax, batchMax + 1 - worthwhile]);
});

/** A batcher whose batches are carried out by hand, and what each of them had: the shares and commands of its units. */
function openByHand() {
  const batches: string[][] = [];
  const done: (() => void)[] = [];
  const batcher = createBatcher(async (units) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    batches.push(units.map(({ share, effect }) => `${share} ${effect?.kind ?? 'Admit'}`));
    done.push(resolve);
    await promise;
    return units.map(() => ({ outcome: { kind: 'DONE', result: undefined, isReplay: false } }));
  });
  const submit = (share: number, effect: Command | undefined, count: number) => {
    for (let left = count; left > 0; left -= 1) batcher.execute({ share, effect });
  };
  /** Has so many batches carried out, one after the other. */
  async function carryOut(count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1) {
      await turn();
      done.shift()?.();
      await turn();
    }
  }
  return { batches, submit, carryOut };
}

test('a filing that a later one of another caller has overtaken gets its time, and one dated by a clock that went back does not', async () => {
  const times: number[] = [];
  const batcher = createBatcher(async (units) =>
    units.map(({ effect }) => {
      if (effect?.kind === 'FileArtwork') times.push(effect.at.atMs);
      return { outcome: { kind: 'DONE', result: undefined, isReplay: false } };
    }),
  );
  const file = (share: number, atMs: number) =>
    batcher.execute({
      share,
      effect: {
        ...{ kind: 'FileArtwork', artwork: { ...artwork, price: 1n } },
        ...{ at: { atMs, timestamp: String(atMs) }, by: { callerId: share, caller: 'gallery' } },
      },
    });
  // More than a share may use in a turn, so that the second one comes between.
  const busy = Array.from({ length: 80 }, () => file(1, 1_000));
  await Promise.all([...busy, file(2, 2_000)]);
  assert.deepEqual([times.length, times.lastIndexOf(1_000), times.indexOf(2_000)], [81, 63, 64]);
  await file(1, 1_500);
  assert.equal(times.at(-1), 1_500);
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
  test(`a call waits for no more than what is being carried out, while another caller has much waiting: ${what}`, async () => {
    const { batches, submit, carryOut } = openByHand();
    submit(1, command, 100);
    await turn();
    submit(2, undefined, 1);
    await carryOut(3);
    const own = `1 ${command.kind}`;
    assert.deepEqual(batches, [[own], ['2 Admit'], [own], [own]]);
  });
}

test('more units than may wait are refused at once with UNAVAILABLE, those before them are answered', async (t) => {
  const { submit, open } = openGated(t);
  const taken = submit(1);
  await turn();
  taken.push(...submit(waitingMax));
  await Promise.all(submit(3).map((beyond) => refused(beyond, 'UNAVAILABLE')));
  open();
  const replies = await Promise.all(taken);
  assert.ok(replies.every(({ outcome }) => outcome.kind === 'DONE'));
  await Promise.all(submit(1));
});

test('closing waits for what was taken and refuses what comes then', async (t) => {
  const { batcher, submit, open } = openGated(t);
  const taken = submit(5);
  let isClosed = false;
  const closing = [batcher.close(), batcher.close()];
  const closed = Promise.all(closing).then(() => {
    isClosed = true;
  });
  await refused(batcher.execute({}), 'UNAVAILABLE');
  await turn();
  await turn();
  assert.equal(isClosed, false);
  open();
  await Promise.all(taken);
  await closed;
  await refused(batcher.execute({}), 'UNAVAILABLE');
});

test('closing waits for nothing where nothing was taken', async (t) => {
  const { batcher } = openGated(t);
  await batcher.close();
});

test('what the engine rejects or leaves without any reply is told to its units, and later ones are carried out', async () => {
  const done: Reply = { outcome: { kind: 'DONE', result: undefined, isReplay: false } };
  const answers: ((units: readonly StoreRequest[]) => readonly Reply[])[] = [
    () => {
      throw new Error('The thread died.');
    },
    () => [],
    () => [
      { failure: { isUnavailable: true, message: 'Full.', cause: 'disk full' } },
      { failure: { isUnavailable: false, message: 'Broken.', cause: 'Error: Broken.\n    at there' } },
    ],
    (units) => units.map(() => done),
  ];
  const { execute } = createBatcher(async (units) => answers.shift()?.(units) ?? []);
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

test('units that a batch left over are sent again, before those that came later', async () => {
  const sent: number[] = [];
  const nameOf = ({ admission }: StoreRequest) => admission?.nowS ?? 0;
  const { execute } = createBatcher(async (units) => {
    sent.push(...units.slice(0, 2).map(nameOf));
    return units.slice(0, 2).map(() => ({ outcome: { kind: 'DONE', result: undefined, isReplay: false } }));
  });
  await Promise.all([1, 2, 3, 4, 5].map((nowS) => execute({ admission: { nowS } })));
  assert.deepEqual(sent, [1, 2, 3, 4, 5]);
});
