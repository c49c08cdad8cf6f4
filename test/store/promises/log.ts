import assert from 'node:assert/strict';
import type { KeptCheckpoint } from '../../../src/store/log-commands.ts';
import { tester } from '../../support/audit-log.ts';
import { newLogKey, noon } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

/** The acts of the log of a store, without their times. */
async function actLeaves(store: TestStore) {
  const leaves = await store.allLeaves();
  return leaves
    .map((leaf) => JSON.parse(leaf))
    .filter(({ number }) => number === 'LOG')
    .map(({ kind, detail }) => [kind, detail.vkey]);
}

const keep = (store: TestStore, checkpoint: KeptCheckpoint) =>
  store.perform({ kind: 'KeepCheckpoint', ...checkpoint });

const checkpoint = (size: number, origin = 'log.example') => ({
  ...{ size, note: `${origin}\n${size}\n`, publishedAtS: 1_790_000_000 + size },
});

const newestOf = async (store: TestStore) => (await store.perform({ kind: 'GetLog' })).newest;

/** What the evidence log is published under. */
export function logPromises({ test }: StoreTests): void {
  test('a log is named once, and its first key is a leaf', async (store) => {
    const empty = {
      origin: undefined,
      names: [],
      keys: [],
      newest: undefined,
      forkedAfter: undefined,
      restoredFromS: undefined,
      restoredAtS: undefined,
    };
    assert.deepEqual(await store.perform({ kind: 'GetLog' }), empty);
    await store.fileOne(store.gallery);
    const key = newLogKey();
    await store.perform({ kind: 'NameLog', origin: 'log.example', key });
    await store.perform({ kind: 'NameLog', origin: 'other.example', key: newLogKey() });
    const { names, keys } = await (await store.openCrashed()).perform({
      kind: 'GetLog',
    });
    assert.deepEqual(names, [{ origin: 'log.example', firstSize: 2 }]);
    assert.deepEqual(
      keys.map(({ sealedSeed, ...rest }) => ({ ...rest, sealedSeed: Buffer.from(sealedSeed) })),
      // Its clock is before the filing, so it is added at the time of its leaf.
      [{ ...key, addedAtS: noon.atMs / 1_000, signsFromS: null, endsAtS: null, isRetired: false }],
    );
    assert.deepEqual(await actLeaves(store), [
      ['LOG_BEGUN', undefined],
      ['KEY_ADDED', key.vkey],
    ]);
  });

  test('a rotated key ends at the earlier time, and its seed is erased then', async (store) => {
    const [first, second, third] = [newLogKey(), newLogKey(), newLogKey()];
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: first });
    await store.perform({ kind: 'RotateLogKey', by: tester, key: second, endsAtS: 500 });
    await store.perform({ kind: 'RotateLogKey', by: tester, key: third, endsAtS: 900 });
    const ends = async () =>
      (await store.perform({ kind: 'GetLog' })).keys.map(({ vkey, endsAtS, isRetired, sealedSeed }) => [
        ...[vkey, endsAtS, isRetired, sealedSeed.length > 0],
      ]);
    assert.deepEqual(await ends(), [
      [third.vkey, null, false, true],
      [second.vkey, 900, false, true],
      [first.vkey, 500, false, true],
    ]);
    const end = { kind: 'EndLogKey', vkey: first.vkey, atS: 600 } as const;
    for (const _ of ['first', 'again']) await store.perform(end);
    await store.perform({ kind: 'RotateLogKey', by: tester, key: newLogKey(), endsAtS: 400 });
    assert.deepEqual((await ends()).slice(1), [
      [third.vkey, 400, false, true],
      [second.vkey, 400, false, true],
      [first.vkey, 500, true, false],
    ]);
    assert.deepEqual((await actLeaves(store)).slice(1, -1), [
      ['KEY_ADDED', first.vkey],
      ['KEY_ADDED', second.vkey],
      ['KEY_ADDED', third.vkey],
      ['KEY_RETIRED', first.vkey],
    ]);
  });

  test('the leaf of a key that signs later has its time', async (store) => {
    const [first, second, third] = [newLogKey(), newLogKey(), newLogKey()];
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: first });
    const rotate = { kind: 'RotateLogKey', by: tester, endsAtS: 900 } as const;
    await store.perform({ ...rotate, key: second, signsFromS: 800 });
    await store.perform({ ...rotate, key: third });
    const { keys } = await (await store.openCrashed()).perform({ kind: 'GetLog' });
    assert.deepEqual(
      keys.map(({ vkey, signsFromS, endsAtS }) => [vkey, signsFromS, endsAtS]),
      [
        [third.vkey, null, null],
        [second.vkey, 800, 900],
        [first.vkey, null, 900],
      ],
    );
    const [, , leaf = ''] = await store.allLeaves();
    assert.deepEqual(JSON.parse(leaf).detail, { from: 800, vkey: second.vkey });
  });

  test('a forked log has a new name, one key, no checkpoint, and a leaf with the last checkpoint before', async (store) => {
    await store.fileOne(store.gallery);
    const [first, second, third] = [newLogKey(), newLogKey(), newLogKey()];
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: first });
    await store.perform({ kind: 'RotateLogKey', by: tester, key: second, endsAtS: 900 });
    await keep(store, { size: 2, note: 'log.example\n2\nroot\n\n— signed\n', publishedAtS: 5 });
    const fork = {
      kind: 'ForkLog',
      by: tester,
      origin: 'log.example/2',
      key: third,
      previous: 'its note',
    } as const;
    await store.perform(fork);
    await assert.rejects(store.perform({ ...fork, key: newLogKey() }));
    const { names, keys, newest, forkedAfter } = await store.perform({ kind: 'GetLog' });
    assert.deepEqual(names, [
      { origin: 'log.example', firstSize: 2 },
      { origin: 'log.example/2', firstSize: 4 },
    ]);
    assert.deepEqual(
      keys.map(({ vkey, isRetired }) => [vkey, isRetired]),
      [
        [third.vkey, false],
        [second.vkey, true],
        [first.vkey, true],
      ],
    );
    assert.deepEqual([newest, forkedAfter], [undefined, 'its note']);
    const leaves = (await store.allLeaves()).slice(4);
    assert.deepEqual(
      leaves.map((leaf) => [JSON.parse(leaf).kind, JSON.parse(leaf).detail]),
      [
        ['LOG_FORKED', { origin: 'log.example/2', previous: 'its note' }],
        ['KEY_RETIRED', { vkey: second.vkey }],
        ['KEY_RETIRED', { vkey: first.vkey }],
        ['KEY_ADDED', { vkey: third.vkey }],
      ],
    );
  });

  test('only the newest checkpoint of the current name is kept', async (store) => {
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: newLogKey() });
    for (const size of [2, 5]) assert.equal(await keep(store, checkpoint(size)), true);
    assert.deepEqual(await newestOf(store), checkpoint(5));
    assert.equal(await keep(store, { ...checkpoint(5), publishedAtS: 1 }), true, 'the same again');
    const others = [
      checkpoint(4),
      { ...checkpoint(5), note: 'log.example\n5\ncosigned\n' },
      checkpoint(9, 'log.example/2'),
    ];
    for (const other of others) assert.equal(await keep(store, other), false);
    assert.deepEqual(await newestOf(await store.openCrashed()), checkpoint(5));
  });

  test('of checkpoints that two instances keep at the same time, the largest stays', async (store) => {
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: newLogKey() });
    const sizes = [7, 3, 9, 9, 2, 11, 5];
    const kept = await Promise.all(sizes.map((size) => keep(store, checkpoint(size))));
    assert.deepEqual(await newestOf(store), checkpoint(11));
    assert.equal(kept[sizes.indexOf(11)], true);
  });

  test('checkpoints with a time stamp are kept, and the first that covers a leaf is found', async (store) => {
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: newLogKey() });
    const stamped = (size: number, origin?: string) => ({
      ...checkpoint(size, origin),
      timeStamp: Buffer.of(size),
    });
    await keep(store, checkpoint(5));
    await store.perform({ kind: 'KeepTimeStamp', ...stamped(5) });
    // A newer checkpoint has replaced the one that was sent to the authority.
    await keep(store, checkpoint(9));
    await store.perform({ kind: 'KeepTimeStamp', ...stamped(7) });
    await store.perform({ kind: 'KeepTimeStamp', ...stamped(3, 'log.example/2') });
    await keep(store, checkpoint(11));
    assert.deepEqual(await newestOf(store), checkpoint(11));
    const again = await store.openCrashed();
    const found = async (leafIndex: number) => {
      const one = await again.perform({ kind: 'FindTimeStamp', leafIndex });
      return one && { ...one, timeStamp: Buffer.from(one.timeStamp) };
    };
    assert.deepEqual(await found(0), stamped(5));
    assert.deepEqual(await found(4), stamped(5));
    assert.deepEqual(await found(5), stamped(7));
    assert.equal(await found(7), undefined);
  });
}
