import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { type RestoreOrder, restoreBackup } from '../../../src/operations/backup/restore.ts';
import { takeBackup } from '../../../src/operations/backup/take.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { perform } from '../../../src/store/store.ts';
import { addPlatform, fileOne, opened, sandbox, time } from '../../store/promises/fixtures.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** The time of backups in these tests. */
export const noon = time('2026-11-21T12:00:00+00:00');

/** Ignores progress. */
export const unwatched = () => {};

/** Opens the registry in a folder; closed after the test. */
export async function openRegistryIn(t: Pick<TestContext, 'after'>, dataDir: string) {
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const isNew = !(await perform(store, { kind: 'HasCallers' }));
  const by = isNew ? await addPlatform(store, 'gallery') : { callerId: 1, caller: 'gallery' };
  return {
    dataDir,
    store,
    /** Files an artwork; its number. */
    file: (at?: string) => fileOne(store, by, at === undefined ? noon : time(at)),
    /** Opens an order for a filing; its id. */
    open: async (filingNo: string) => (await opened(store, by, filingNo)).escrowId,
  };
}

/** A new registry; closed after the test. */
export function newRegistry(t: Pick<TestContext, 'after'>) {
  return openRegistryIn(t, temporaryFolder(t));
}

/** Takes a backup of a data folder, at noon by default; its file. */
export async function backedUp(t: Pick<TestContext, 'after'>, dataDir: string, nowMs: number = noon.atMs) {
  const target = join(temporaryFolder(t), 'backup.tar');
  await takeBackup({ dataDir, target, nowMs, progress: unwatched });
  return target;
}

/** A registry with that many filings, and a backup of it. */
export async function registryWithBackup(t: Pick<TestContext, 'after'>, filings = 1, nowMs?: number) {
  const original = await newRegistry(t);
  for (let filed = 0; filed < filings; filed += 1) await original.file();
  return { original, backup: await backedUp(t, original.dataDir, nowMs) };
}

/** Restores a backup an hour after noon, by default into a folder that does not exist yet. */
export async function restored(
  t: Pick<TestContext, 'after'>,
  file: string,
  over: Partial<RestoreOrder> = {},
) {
  const into = over.into ?? join(temporaryFolder(t), 'restored');
  const order = { nowMs: noon.atMs + 3_600_000, numbersAfter: undefined, random: () => 0, ...over };
  const calendar = createCalendar('UTC');
  const { gaps, manifest } = await restoreBackup({
    ...{ file, into, calendar, progress: unwatched },
    ...order,
  });
  return { into, gaps, manifest };
}

/** Restores a backup, and opens the registry. */
export async function reopened(
  t: Pick<TestContext, 'after'>,
  file: string,
  over: Partial<RestoreOrder> = {},
) {
  const { into, gaps } = await restored(t, file, over);
  return { ...(await openRegistryIn(t, into)), gaps };
}

/** Makes the other files of a sandbox that a backup contains. */
export function addSandboxFiles(dataDir: string): void {
  writeFileSync(join(dataDir, 'sandbox-credentials.json'), '{}', { mode: 0o600 });
  writeFileSync(join(dataDir, 'master-key'), `main:${'0'.repeat(64)}\n`, { mode: 0o600 });
}
