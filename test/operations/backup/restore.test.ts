import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BackupError } from '../../../src/operations/backup/manifest.ts';
import { verifyBackup } from '../../../src/operations/backup/verify.ts';
import { DatabaseError } from '../../../src/store/engine/failure.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import { furtherSchema, makeEarlierDatabase, presentSchema } from '../../store/further-migration.ts';
import { acceptClock, caseOf, due, refused, sandbox, settled, time } from '../../store/promises/fixtures.ts';
import { openRaw } from '../../store/raw-database.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addSandboxFiles,
  backedUp,
  newRegistry,
  noon,
  openRegistryIn,
  registryWithBackup,
  reopened,
  restored,
  unwatched,
} from './folder.ts';

test('a restored registry skips all numbers that the original may have given after the backup', async (t) => {
  const original = await newRegistry(t);
  const given = [await original.file()];
  const ids = [await original.open(given[0] ?? '')];
  const backup = await backedUp(t, original.dataDir);
  for (let more = 0; more < 3; more += 1) given.push(await original.file());
  for (const filingNo of given.slice(1)) ids.push(await original.open(filingNo));

  const registry = await reopened(t, backup);
  const metrics = await perform(registry.store, { kind: 'ReadMetrics', nowMs: noon.atMs, year: 2026 });
  assert.equal(metrics.filingNumbers, 500_000);
  for (let more = 0; more < 3; more += 1) given.push(await registry.file());
  for (const filingNo of given.slice(-3)) ids.push(await registry.open(filingNo));
  assert.equal(new Set(given).size, 7);
  assert.equal(new Set(ids).size, 7);
  assert.equal(given.at(-1), 'AS-2026-500003');
  assert.deepEqual(registry.gaps[0], { kind: 'FILING', year: 2026, after: 1, through: 500_000 });
});

test('with --numbers-after the next number follows it, and the gap is kept for ever', async (t) => {
  const { backup } = await registryWithBackup(t);
  const registry = await reopened(t, backup, { numbersAfter: 'AS-2026-000123' });
  assert.equal(await registry.file(), 'AS-2026-000124');
  const raw = openRaw(t, registry.dataDir);
  assert.deepEqual(raw.prepare("SELECT * FROM number_gap WHERE kind = 'FILING'").raw().all(), [
    ['FILING', 2026, 1, 123, 1],
  ]);
  const [takenAtS, restoredAtS] = [noon.atMs / 1000, noon.atMs / 1000 + 3_600];
  assert.deepEqual(raw.prepare('SELECT * FROM restoration').raw().all(), [[1, takenAtS, restoredAtS, null]]);
  for (const change of [
    'UPDATE number_gap SET through = 2',
    'DELETE FROM number_gap',
    'INSERT OR REPLACE INTO number_gap SELECT * FROM number_gap',
    'UPDATE restoration SET taken_at_s = 1',
    'DELETE FROM restoration',
    'INSERT OR REPLACE INTO restoration SELECT * FROM restoration',
  ]) {
    assert.throws(() => raw.exec(change), { code: 'SQLITE_CONSTRAINT_TRIGGER' }, change);
  }
});

test('two restorations of one backup start at different numbers', async (t) => {
  const original = await newRegistry(t);
  const sold = await original.file();
  await original.open(sold);
  const backup = await backedUp(t, original.dataDir);
  for (const [numbersAfter, random, first] of [
    [undefined, 0.25, 'AS-2026-502501'],
    [undefined, 0.5, 'AS-2026-505001'],
    ['AS-2026-000123', 0.25, 'AS-2026-002624'],
    ['AS-2026-999989', 0.99, 'AS-2026-999990'],
  ] as const) {
    const registry = await reopened(t, backup, { numbersAfter, random: () => random });
    const skipped = registry.gaps.find(({ kind }) => kind === 'ESCROW');
    assert.equal(skipped?.through, 839_809 + random * 10_000);
    await perform(registry.store, { kind: 'RecordServing', atS: noon.atMs / 1_000 });
    assert.equal(await registry.file(), first);
    const { faults } = await verifyBackup(await backedUp(t, registry.dataDir), unwatched);
    assert.deepEqual(faults, []);
  }
});

test('events of a restored registry continue after every cursor that the original may have given', async (t) => {
  const { original, backup } = await registryWithBackup(t);
  await original.file();
  const read = async ({ store }: Pick<typeof original, 'store'>, after?: number) => {
    const { events } = await perform(store, { kind: 'ReadEvents', callerId: 1, after });
    return events.map(({ sequence }) => sequence);
  };
  assert.deepEqual(await read(original), [1, 2]);
  const registry = await reopened(t, backup);
  // A cursor that is ahead of the backup stays valid.
  assert.deepEqual(await read(registry, 2), []);
  await registry.file();
  assert.deepEqual(await read(registry, 2), [1_000_002]);
  assert.deepEqual(await read(registry), [1, 1_000_002]);
  // A search by time meets the gap.
  for (const [sinceMs, expected] of [
    [noon.atMs, [1, 1_000_002]],
    [noon.atMs + 1, []],
  ] as const) {
    const since = { after: undefined, sinceMs };
    const all = await perform(registry.store, { kind: 'ReadAllEvents', ...since });
    const own = await perform(registry.store, { kind: 'ReadEvents', callerId: 1, ...since });
    for (const { events } of [all, own])
      assert.deepEqual(
        events.map(({ sequence }) => sequence),
        expected,
      );
  }
});

test('the number of the last filing in the backup leaves no gap', async (t) => {
  const { backup } = await registryWithBackup(t);
  const { file, gaps } = await reopened(t, backup, { numbersAfter: 'AS-2026-000001' });
  assert.deepEqual(
    gaps.map(({ kind }) => kind),
    ['ESCROW'],
  );
  assert.equal(await file(), 'AS-2026-000002');
});

test('an impossible last number is rejected, and the folder stays empty', async (t) => {
  const { backup } = await registryWithBackup(t, 2);
  for (const [numbersAfter, why] of [
    ['AS-2026-000001', /AS-2026-000002 was given out before the backup/],
    ['AS-2025-000009', /is of no year since the backup was taken/],
  ] as const) {
    const into = join(temporaryFolder(t), 'restored');
    await assert.rejects(restored(t, backup, { numbersAfter, into }), { message: why });
    assert.deepEqual(existsSync(into) ? readdirSync(into) : [], []);
  }
});

test('if a year has ended since the backup, numbers of both years are skipped', async (t) => {
  const { backup } = await registryWithBackup(t);
  const nowMs = Date.parse('2027-01-02T00:00:00Z');
  const registry = await reopened(t, backup, { nowMs });
  assert.equal(await registry.file('2027-01-02T00:00:00+00:00'), 'AS-2027-500001');
  await acceptClock(registry.store, time('2026-12-31T23:59:00+00:00'));
  assert.equal(await registry.file('2026-12-31T23:59:00+00:00'), 'AS-2026-500001');
  const known = await reopened(t, backup, { nowMs, numbersAfter: 'AS-2027-000007' });
  assert.equal(await known.file('2027-01-02T00:00:00+00:00'), 'AS-2027-000008');
});

test('if the clock was ahead during the backup, numbers of the right year are skipped as well', async (t) => {
  const { backup } = await registryWithBackup(t, 1, Date.parse('2028-01-01T12:00:00Z'));
  for (const restoredAt of ['2026-12-31T12:00:00Z', '2027-01-01T12:00:00Z']) {
    const registry = await reopened(t, backup, { nowMs: Date.parse(restoredAt) });
    assert.equal(await registry.file(), 'AS-2026-500001');
    assert.equal(await registry.file('2027-01-01T12:00:00+00:00'), 'AS-2027-500001');
    assert.equal(await registry.file('2028-01-01T12:00:00+00:00'), 'AS-2028-500001');
  }
});

test('a second restoration skips the numbers that the first one may have given', async (t) => {
  const { backup } = await registryWithBackup(t);
  const { into } = await restored(t, backup);
  const again = await reopened(t, await backedUp(t, into));
  assert.equal(await again.file(), 'AS-2026-750001');
  assert.deepEqual(
    again.gaps.filter(({ kind }) => kind === 'FILING'),
    [{ kind: 'FILING', year: 2026, after: 500_000, through: 750_000 }],
  );
});

const farAheadMs = Number.MAX_SAFE_INTEGER;

test('a restored registry asks the provider about all open orders at once', async (t) => {
  const original = await newRegistry(t);
  const [open, frozen] = [
    await original.open(await original.file()),
    await original.open(await original.file()),
  ];
  await settled(original.store, frozen, { to: 'FROZEN' });
  assert.deepEqual(await due(original.store, 1, farAheadMs), []);
  const { store } = await reopened(t, await backedUp(t, original.dataDir));
  assert.deepEqual((await due(store, 1, farAheadMs)).toSorted(), [open, frozen].toSorted());
  assert.equal((await caseOf(store, frozen)).order.state, 'FROZEN');
});

test('a folder with files is rejected and stays as it is; lost+found does not count', async (t) => {
  const { backup } = await registryWithBackup(t);
  const into = temporaryFolder(t);
  mkdirSync(join(into, 'lost+found'));
  writeFileSync(join(into, 'mine'), 'mine');
  await assert.rejects(restored(t, backup, { into }), BackupError);
  assert.deepEqual(readdirSync(into).sort(), ['lost+found', 'mine']);
  await assert.rejects(restored(t, backup, { into: join(into, 'mine') }), /not an empty folder/);

  const disk = temporaryFolder(t);
  mkdirSync(join(disk, 'lost+found'));
  await restored(t, backup, { into: disk });
  assert.deepEqual(readdirSync(disk).sort(), ['artseal.db', 'lost+found']);
});

test('only its user can read a restored folder, which has all files of a sandbox', async (t) => {
  const original = await newRegistry(t);
  addSandboxFiles(original.dataDir);
  const { into } = await restored(t, await backedUp(t, original.dataDir));
  assert.deepEqual(readdirSync(into).sort(), ['artseal.db', 'master-key', 'sandbox-credentials.json']);
  assert.equal(statSync(into).mode & 0o777, 0o700);
  for (const name of readdirSync(into)) assert.equal(statSync(join(into, name)).mode & 0o777, 0o600, name);
});

test('a restored production opens only as that production', async (t) => {
  const dataDir = temporaryFolder(t);
  const stamps = { environment: 'production', currency: 'EUR' } as const;
  await createSqliteStore({ dataDir, ...stamps, opening: 'NEW' }).close();
  addSandboxFiles(dataDir);
  const { into } = await restored(t, await backedUp(t, dataDir));
  assert.deepEqual(readdirSync(into), ['artseal.db']);
  const open = (as: object) => createSqliteStore({ dataDir: into, ...sandbox, ...stamps, ...as });
  assert.throws(() => open({ environment: 'sandbox' }), DatabaseError);
  assert.throws(() => open({ currency: 'CNY' }), DatabaseError);
  await open({}).close();
});

test('a restored store keeps the time when it was first served', async (t) => {
  const original = await newRegistry(t);
  const found = async (store: typeof original.store) => {
    const restoration = await perform(store, { kind: 'FindRestoration' });
    return restoration && [restoration.servedAtS];
  };
  const serve = (store: typeof original.store, atS: number) => perform(store, { kind: 'RecordServing', atS });
  await serve(original.store, 5);
  assert.equal(await found(original.store), undefined);
  const { store, dataDir } = await reopened(t, await backedUp(t, original.dataDir));
  assert.deepEqual(await found(store), [undefined]);
  await serve(store, 7);
  await serve(store, 9);
  assert.deepEqual(await found(store), [7]);
  const { store: again } = await reopened(t, await backedUp(t, dataDir));
  assert.deepEqual(await found(again), [undefined]);
  await serve(again, 11);
  assert.deepEqual(await found(again), [11]);
});

test('skipped numbers become one leaf of the evidence log at the first start', async (t) => {
  const { backup } = await registryWithBackup(t);
  const logEvents = async (store: Store) => {
    const { size } = await perform(store, { kind: 'GetTree' });
    const leaves = (await perform(store, { kind: 'ReadLeaves', index: 0, width: size })) ?? [];
    const events = leaves.map((leaf) => JSON.parse(leaf)).filter(({ number }) => number === 'LOG');
    return events.map(({ kind, sequence, time, detail }) => [kind, sequence, time, detail]);
  };
  const serve = (store: Store, atS: number) => perform(store, { kind: 'RecordServing', atS });
  const noonS = noon.atMs / 1000;
  const begun = ['LOG_BEGUN', 1, noonS, { adopted: 0 }];
  const { store, file, dataDir } = await reopened(t, backup);
  assert.deepEqual(await logEvents(store), [begun]);
  for (const atS of [noonS + 7, noonS + 9]) await serve(store, atS);
  const skipped = ['NUMBERS_SKIPPED', 2, noonS + 7, { year: 2026, after: 1, through: 500_000 }];
  assert.deepEqual(await logEvents(store), [begun, skipped]);
  await file('2026-11-21T13:00:00+00:00');
  const { store: second } = await reopened(t, await backedUp(t, dataDir), {
    numbersAfter: 'AS-2026-500009',
  });
  await serve(second, noonS + 7_200);
  assert.deepEqual(await logEvents(second), [
    ...[begun, skipped],
    ['NUMBERS_SKIPPED', 3, noonS + 7_200, { year: 2026, after: 500_001, through: 500_009 }],
  ]);
});

test('if a year has too few numbers left for a safe gap, --numbers-after is required', async (t) => {
  const original = await newRegistry(t);
  await original.file();
  await original.store.close();
  openRaw(t, original.dataDir).exec(`INSERT INTO restoration VALUES (1, 1, 1, NULL);
    INSERT INTO number_gap VALUES ('FILING', 2026, 1, 999989, 1)`);
  const { store, file } = await openRegistryIn(t, original.dataDir);
  await perform(store, { kind: 'RecordServing', atS: noon.atMs / 1_000 });
  assert.equal(await file(), 'AS-2026-999990');
  const backup = await backedUp(t, original.dataDir);
  await assert.rejects(
    restored(t, backup),
    /too few numbers left .* ends with AS-2026-999990: .* --numbers-after/,
  );
  const known = await reopened(t, backup, { numbersAfter: 'AS-2026-999995' });
  assert.equal(await known.file(), 'AS-2026-999996');

  // When that year is over it needs none, and --numbers-after is for the year that follows.
  const nowMs = Date.parse('2027-01-02T00:00:00Z');
  const registry = await reopened(t, backup, { nowMs, numbersAfter: 'AS-2027-000007' });
  assert.equal(await registry.file('2027-01-02T00:00:00+00:00'), 'AS-2027-000008');
  await acceptClock(registry.store, time('2026-12-31T23:59:00+00:00'));
  await refused(registry.file('2026-12-31T23:59:00+00:00'), 'FILING_NUMBERS_EXHAUSTED');
});

test('a backup keeps an earlier schema, and a restore upgrades it', async (t) => {
  const { dataDir, filings } = await makeEarlierDatabase(t);
  const backup = await backedUp(t, dataDir);
  const { manifest, faults } = await verifyBackup(backup, unwatched);
  assert.deepEqual([manifest.database.schema, faults], [presentSchema, []]);
  const { into } = await restored(t, backup, { numbersAfter: 'AS-2026-000008' });
  const kept = openRaw(t, into, { readonly: true });
  assert.equal(kept.pragma('user_version', { simple: true }), furtherSchema);
  assert.deepEqual(kept.prepare('SELECT filing_no FROM filing ORDER BY id').pluck().all(), filings);
  assert.equal(await (await openRegistryIn(t, into)).file(), 'AS-2026-000009');
});
