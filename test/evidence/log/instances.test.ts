import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { makeFork } from '../../../src/evidence/log/fork.ts';
import { createCheckpointFile, type PublishedCheckpoint } from '../../../src/evidence/log/publication.ts';
import { createSigner } from '../../../src/evidence/log/signer.ts';
import { mintLogKey } from '../../../src/evidence/log/signing-keys.ts';
import { createKeyRing } from '../../../src/keys/key-ring.ts';
import { createLog } from '../../../src/lib/log.ts';
import { type Execute, executorOf, type Store } from '../../../src/store/store.ts';
import { sqliteInThisThread } from '../../store/engines.ts';
import { addPlatform, crashCopy, fileOne, noon, openStore } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { checkpointTextOf, noteKey, witnessKey } from '../../support/note-keys.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { signedBy } from './publishing.ts';

// Instances that publish one log: signers over one store, each with a file and a clock of its own.

const timeoutMs = 60_000;
const origin = 'log.example/artworks';
const keyRing = createKeyRing([{ name: 'main', key: Buffer.alloc(32, 9) }]);

type Instance = ReturnType<typeof instanceOf>;

interface InstanceOptions {
  readonly isLeading?: boolean;
  readonly folder?: string;
  readonly execute?: Execute;
  readonly witness?: string;
  /** Whether it knows of no other instance. */
  readonly isAlone?: boolean;
}

/** An instance that has not started. */
function instanceOf(t: TestContext, store: Store, options: InstanceOptions = {}) {
  const { folder = temporaryFolder(t), witness, isAlone = false } = options;
  const clock = createManualClock(noon.atMs);
  const lines: string[] = [];
  const file = createCheckpointFile(folder);
  const instance = {
    ...{ clock, lines, folder, file },
    /** What its witness has cosigned, and what it was only shown. */
    ...{ cosigned: [] as number[], shown: [] as number[] },
    isLeading: options.isLeading ?? false,
    execute: options.execute ?? executorOf(store),
    text: () => readFileSync(file.path, 'utf8'),
    current: (): PublishedCheckpoint => signer.current() ?? assert.fail('nothing is published'),
    /** Begins one round of the signer. */
    begin: () => clock.advance(1_000),
    /** Waits until a round has ended: only then is the next one due. */
    ended: () => eventually('the look has ended', timeoutMs, () => clock.nextDueMs() !== undefined),
    look: async () => {
      instance.begin();
      await instance.ended();
    },
  };
  const key = witness === undefined ? undefined : witnessKey(witness);
  const signer = createSigner({
    ...{ keyRing, origin, madeUpOrigin: '', file, clock },
    execute: (command) => instance.execute(command),
    instances: isAlone ? undefined : { isLeading: () => instance.isLeading, others: () => 1 },
    witnesses: key && {
      cosign: async ({ size, note }) => {
        instance.cosigned.push(size);
        return note + key.cosign(checkpointTextOf(note), noon.atMs / 1_000);
      },
      confirm: async ({ size }) => void instance.shown.push(size),
      rolledBack: () => [],
    },
    awaitsWitnesses: true,
    log: createLog({ write: (line) => lines.push(line) }),
  });
  return Object.assign(instance, { signer });
}

/** A log, and a leader that has published three of its leaves. */
async function openLog(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const store = await openStore(t, sqliteInThisThread, dataDir);
  const by = await addPlatform(store, 'gallery');
  const execute = executorOf(store);
  const leader = instanceOf(t, store, { isLeading: true });
  await leader.signer.start();
  const file = async (count = 1) => {
    await Promise.all(Array.from({ length: count }, () => fileOne(store, by)));
  };
  await file();
  await leader.look();
  const kept = async () => (await execute({ kind: 'GetLog' })).newest;
  return {
    ...{ dataDir, store, execute, by, leader, file, kept },
    join: async (options: InstanceOptions = {}) => {
      const instance = instanceOf(t, store, options);
      await instance.signer.start();
      return instance;
    },
  };
}

/** All instances publish the same checkpoint of so many leaves, and the file of each has it. */
function assertPublished(size: number, ...instances: readonly Instance[]): void {
  const [first] = instances.map(({ current }) => current());
  assert.equal(first?.size, size);
  for (const { current, text, signer } of instances) {
    assert.equal(current().note, first?.note);
    assert.equal(text(), first?.note);
    signedBy(text(), signer.verifierKeys());
  }
}

/** Stops an instance where it keeps a checkpoint. Returns the function that lets it continue. */
async function stopBeforeKeeping(instance: Instance, store: Execute): Promise<() => Promise<void>> {
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  instance.execute = async (command) => {
    if (command.kind === 'KeepCheckpoint') {
      reached.resolve();
      await goOn.promise;
    }
    return store(command);
  };
  instance.begin();
  await reached.promise;
  return async () => {
    goOn.resolve();
    await instance.ended();
    instance.execute = store;
  };
}

/** Keeps every checkpoint, as if none were compared with the kept one. */
function withoutComparison(dataDir: string, execute: Execute): Execute {
  return async (command) => {
    if (command.kind === 'KeepCheckpoint') {
      const client = new Sqlite(join(dataDir, 'artseal.db'), { timeout: timeoutMs });
      client.exec('DELETE FROM log_checkpoint');
      client.close();
    }
    return execute(command);
  };
}

test('the instance that leads signs, and the others publish its checkpoints', async (t) => {
  const { leader, join: joined, file } = await openLog(t);
  const other = await joined({ witness: 'other.example/w' });
  assertPublished(3, leader, other);
  assert.deepEqual(other.shown, [3], 'so that it knows of a rollback before it files');
  await file(2);
  await other.look();
  assert.equal(other.current().size, 3);
  assert.equal(other.signer.metrics().leaves, 5);
  const covered = other.signer.covering(4, timeoutMs);
  await leader.look();
  other.begin();
  assert.equal((await covered)?.size, 5);
  assertPublished(5, leader, other);
  const { publishedLeaves, publishedAtS, failures } = other.signer.metrics();
  assert.deepEqual([publishedLeaves, failures], [5, 0]);
  assert.equal(publishedAtS, leader.signer.metrics().publishedAtS);

  // The other one takes over at its next round. It first publishes what the earlier leader published last.
  [leader.isLeading, other.isLeading] = [false, true];
  await file();
  await leader.look();
  assert.equal(leader.current().size, 5);
  assert.deepEqual(other.cosigned, []);
  await other.look();
  await leader.look();
  assert.deepEqual(other.cosigned, [6]);
  assertPublished(6, leader, other);
});

for (const isCompared of [true, false])
  test(`a leader that was stopped ${isCompared ? 'publishes nothing' : 'shrinks the log without a comparison'} when it continues`, async (t) => {
    const { leader, join: joined, execute, dataDir, file, kept } = await openLog(t);
    const other = await joined();
    await file();
    const goOn = await stopBeforeKeeping(leader, isCompared ? execute : withoutComparison(dataDir, execute));
    other.isLeading = true;
    await file(2);
    await other.look();
    assertPublished(6, other);
    await goOn();
    assert.equal((await kept())?.size, isCompared ? 6 : 4);
    if (!isCompared) return;
    assert.equal(leader.current().size, 3);
    assert.match(leader.lines.join(), /another instance has published a checkpoint .* meanwhile/);
    await leader.look();
    assertPublished(6, leader, other);
    assert.equal(leader.signer.metrics().failures, 0);
  });

for (const isCompared of [true, false])
  test(`two leaders ${isCompared ? 'publish one checkpoint of each size' : 'publish two of one size without a comparison'}`, async (t) => {
    const opened = await openLog(t);
    const execute = isCompared ? opened.execute : withoutComparison(opened.dataDir, opened.execute);
    const names = ['one.example/w', 'two.example/w'];
    // Their checkpoints of one size differ: each has its own witness.
    const leaders = await Promise.all(
      names.map((witness) => opened.join({ isLeading: true, witness, execute })),
    );
    const notes = new Map<number, Set<string>>();
    const sizes = leaders.map(() => 0);
    for (let round = 0; round < 20; round += 1) {
      await opened.file(1 + (round % 3));
      for (const { begin } of leaders) begin();
      for (const [index, { ended, current }] of leaders.entries()) {
        await ended();
        const { size, note } = current();
        assert.ok(size >= (sizes[index] ?? 0));
        sizes[index] = size;
        notes.set(size, (notes.get(size) ?? new Set()).add(note));
      }
    }
    assert.equal(
      [...notes.values()].every((ofSize) => ofSize.size === 1),
      isCompared,
    );
    if (!isCompared) return;
    for (const { look } of leaders) await look();
    const { size } = await execute({ kind: 'GetTree' });
    assertPublished(size, ...leaders);
  });

test('an instance starts with an empty folder, or with an old file', async (t) => {
  const { leader, join: joined, file } = await openLog(t);
  const folder = temporaryFolder(t);
  await joined({ folder });
  await file();
  await leader.look();
  const [empty, old] = [await joined(), await joined({ folder })];
  assertPublished(4, leader, empty, old);
  await file();
  await leader.look();
  // Without other instances, nobody knows what was published since.
  await assert.rejects(joined({ isAlone: true }), { kind: 'FILE_MISSING' });
  await assert.rejects(joined({ isAlone: true, folder }), { kind: 'FILE_OLD' });
});

test('an instance that starts with a newer file than the database keeps has all publish it', async (t) => {
  const { leader, join: joined, file, execute } = await openLog(t);
  const other = await joined();
  await file();
  // It crashes after it has written its file.
  await stopBeforeKeeping(leader, execute);
  const again = await joined({ folder: leader.folder });
  await other.look();
  assertPublished(4, again, other);
});

test('a database that was put back by 100 leaves is signed by no instance', async (t) => {
  const { leader, join: joined, file, dataDir, by } = await openLog(t);
  const older = crashCopy(t, dataDir);
  await file(100);
  await leader.look();
  const stopped = await joined();
  assertPublished(103, leader, stopped);

  const store = await openStore(t, sqliteInThisThread, older);
  const behind = { name: 'EvidenceLogError', kind: 'DATABASE_BEHIND' };
  // One that has never seen the log cannot know.
  const fresh = instanceOf(t, store, { isLeading: true });
  await fresh.signer.start();
  await fileOne(store, by);
  await fresh.look();
  assertPublished(4, fresh);
  assert.equal(fresh.signer.rollback(), undefined);

  leader.execute = executorOf(store);
  await leader.look();
  for (const instance of [leader, fresh]) {
    await fileOne(store, by);
    await instance.look();
    await instance.look();
    assert.match(instance.lines.join(), /the database is older than what was published: it has \d leaves/);
    assert.match(instance.signer.rollback() ?? '', /checkpoint of 103/);
  }
  assert.deepEqual([leader.current().size, fresh.current().size], [103, 4]);
  for (const folder of [stopped.folder, fresh.folder, temporaryFolder(t)])
    await assert.rejects(instanceOf(t, store, { folder }).signer.start(), behind);
});

test('an instance that has published more than a database that was put back and grew does not follow it', async (t) => {
  const { leader, file, dataDir, by } = await openLog(t);
  const older = crashCopy(t, dataDir);
  await file(2);
  await leader.look();
  const store = await openStore(t, sqliteInThisThread, older);
  const fresh = instanceOf(t, store, { isLeading: true });
  await fresh.signer.start();
  for (let count = 0; count < 3; count += 1) await fileOne(store, by);
  await fresh.look();
  assertPublished(6, fresh);
  const text = leader.text();
  leader.execute = executorOf(store);
  await leader.look();
  assert.match(leader.lines.join(), /does not agree with what was published: the tree of its first 5 leaves/);
  const changed = { kind: 'DATABASE_CHANGED' };
  await assert.rejects(instanceOf(t, store, { folder: leader.folder }).signer.start(), changed);
  assert.deepEqual([leader.current().size, leader.text()], [5, text]);
});

test('instances that start at the same time give a new log one name and one key', async (t) => {
  const store = await openStore(t, sqliteInThisThread);
  const instances = [true, false, false].map((isLeading) => instanceOf(t, store, { isLeading }));
  await Promise.all(instances.map(({ signer }) => signer.start()));
  const { names, keys } = await executorOf(store)({ kind: 'GetLog' });
  assert.deepEqual([names.map((name) => name.origin), keys.length], [[origin], 1]);
  for (const { look } of instances) await look();
  assertPublished(2, ...instances);
});

test('a key that one instance adds signs at all, and is retired once', async (t) => {
  const { leader, join: joined, execute } = await openLog(t);
  const other = await joined({ isLeading: true });
  const [old = ''] = leader.signer.verifierKeys();
  const key = mintLogKey(origin, keyRing, noon.atMs / 1_000);
  const endsAtS = noon.atMs / 1_000 + 60;
  await execute({ kind: 'RotateLogKey', by: tester, key, endsAtS });
  for (const { look } of [leader, other]) await look();
  for (const { signer } of [leader, other]) assert.deepEqual(signer.verifierKeys(), [key.vkey, old]);
  assertPublished(4, leader, other);
  for (const { clock } of [leader, other]) clock.leap(60_000);
  for (const { ended } of [leader, other]) await ended();
  for (const { look } of [leader, other]) await look();
  for (const { signer } of [leader, other]) assert.deepEqual(signer.verifierKeys(), [key.vkey]);
  assertPublished(5, leader, other);
});

test('all instances continue a forked log under its new name, also with files of the old one', async (t) => {
  const { leader, join: joined, file, execute, kept } = await openLog(t);
  const [other, stopped] = [await joined(), await joined()];
  await file();
  const goOn = await stopBeforeKeeping(leader, execute);
  const named = { execute, keyRing, origin, madeUpOrigin: '', isShared: true };
  const plan = { why: '', givesNumbersAgain: false, keptAs: undefined };
  const fork = { ...plan, previous: other.current(), origin: `${origin}/2` };
  const vkey = await makeFork({ ...named, file: other.file }, fork, tester);
  await goOn();
  assert.equal(await kept(), undefined, 'the old log has no checkpoint any more');
  await leader.look();
  const again = await joined({ folder: stopped.folder });
  await other.look();
  const { size } = await execute({ kind: 'GetTree' });
  assertPublished(size, leader, other, again);
  assert.equal(other.current().origin, `${origin}/2`);
  assert.deepEqual(other.signer.verifierKeys(), [vkey]);
  // But not with the file of another log.
  writeFileSync(
    stopped.file.path,
    noteKey('log.example/other').sign(
      checkpointTextOf(again.text()).replace(`${origin}/2`, 'log.example/other'),
    ),
  );
  await assert.rejects(joined({ folder: stopped.folder }), { kind: 'OTHER_LOG' });
});
