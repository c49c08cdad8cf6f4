import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { createCalendar } from '../../src/domain/calendar.ts';
import { logEventLeafData } from '../../src/domain/leaf.ts';
import { rootOf } from '../../src/domain/merkle.ts';
import { restoreBackup } from '../../src/operations/backup/restore.ts';
import { takeBackup } from '../../src/operations/backup/take.ts';
import type { BusinessTime, CallerRef } from '../../src/store/filing-commands.ts';
import { perform } from '../../src/store/store.ts';
import { acceptClock, fileOne, opened, resolved, settled, time } from '../store/promises/fixtures.ts';
import { tester } from './audit-log.ts';
import { createManualClock } from './clock.ts';
import { appendForged, type FilingRow, leafOfFiling, rewriteLeaf, rewriteTree } from './forging.ts';
import { noteKey } from './note-keys.ts';
import { publishAll } from './publication.ts';
import { startService, type TestService } from './service.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A way to forge the database of a registry. */
export interface Forgery {
  readonly name: string;
  /** What is changed. */
  readonly what: string;
  /** Changes a database. Returns the name that a fault has to contain. */
  forge(client: Sqlite.Database): string;
}

/** When the registry of `makeForgeableRegistry` was served last. */
export const forgeableAtMs = Date.parse('2026-11-21T14:00:00+00:00');

/**
 * Makes the registry of the forgeries with the service itself: filings of two platforms, one sold twice, two erased with a
 * transfer, numbers skipped by a restoration, all published. Returns the data folder of the stopped service.
 */
export async function makeForgeableRegistry(t: Pick<TestContext, 'after'>): Promise<string> {
  const long = time('2015-06-01T12:00:00+00:00');
  const clock = createManualClock(long.atMs);
  const first = await startService(t, { clock });
  const { store } = first;
  const [gallery, house] = [await platformOf(first), await platformOf(first)];
  const erased = [await fileOne(store, gallery, long), await fileOne(store, house, long)];
  await fileOne(store, gallery, long);
  await sell(first, gallery, erased[0] ?? '', long);

  const noon = time('2026-11-21T12:00:00+00:00');
  clock.setWall(noon.atMs);
  await acceptClock(store, noon);
  const sold = await fileOne(store, gallery, noon);
  for (const by of [house, gallery, gallery, house]) await fileOne(store, by, noon);
  await sell(first, gallery, sold, noon);
  await sell(first, gallery, sold, noon);
  const atS = noon.atMs / 1_000;
  await perform(store, { kind: 'EraseFilings', by: { ...tester, atS }, filingNos: erased });
  await publishAll(first, clock);
  await first.close();

  const into = join(temporaryFolder(t), 'restored');
  await restoreTo(t, first.dataDir, into, clock.nowMs());
  // So long before that signed calls are accepted again.
  clock.setWall(forgeableAtMs - 301_000);
  const second = await startService(t, { clock, dataDir: into });
  clock.setWall(forgeableAtMs);
  for (const by of [gallery, house, gallery])
    await fileOne(second.store, by, time('2026-11-21T14:00:00+00:00'));
  await publishAll(second, clock);
  await second.close();
  return into;
}

/** Registers a platform. Returns its names in the store. */
async function platformOf(service: TestService): Promise<CallerRef> {
  const { caller } = await service.platform();
  const found = await perform(service.store, { kind: 'FindPlatform', name: caller });
  if (found === undefined) throw new Error(`There is no platform ${caller}.`);
  return { callerId: found.callerId, caller };
}

/** Releases an order for a filing, which appends a TRANSFER. */
async function sell(
  { store }: TestService,
  by: CallerRef,
  filingNo: string,
  at: BusinessTime,
): Promise<void> {
  const { escrowId } = await opened(store, by, filingNo);
  await settled(store, escrowId, { to: 'FROZEN' }, at);
  await resolved(store, by, escrowId, 'RELEASE', at);
}

/** Restores a backup of a registry, with the files that backups do not contain. */
async function restoreTo(
  t: Pick<TestContext, 'after'>,
  dataDir: string,
  into: string,
  nowMs: number,
): Promise<void> {
  const backup = join(temporaryFolder(t), 'backup.tar');
  const progress = () => {};
  await takeBackup({ dataDir, target: backup, nowMs, progress });
  await restoreBackup({
    ...{ file: backup, into, nowMs, numbersAfter: undefined, progress },
    ...{ calendar: createCalendar('UTC'), currency: 'CNY', random: () => 0 },
  });
  for (const name of ['master-key', 'log-checkpoint']) copyFileSync(join(dataDir, name), join(into, name));
}

/** The filing that was sold. */
const sold = `filing_no = (SELECT min(filing_no) FROM filing WHERE erased_at_s IS NULL
  AND filing_no IN (SELECT filing_no FROM provenance_record))`;

/** A filing that was not sold, and is neither the first nor the last of its platform. */
const middle = `filing_no = (SELECT min(filing_no) FROM filing WHERE erased_at_s IS NULL
  AND previous_id IN (SELECT id FROM filing WHERE erased_at_s IS NULL)
  AND id IN (SELECT previous_id FROM filing)
  AND filing_no NOT IN (SELECT filing_no FROM provenance_record))`;

/** The filing that was filed last. */
const newest = 'id = (SELECT max(id) FROM filing)';

function filingWhere(client: Sqlite.Database, condition: string): FilingRow {
  const row = client.prepare<[], FilingRow>(`SELECT * FROM filing WHERE ${condition}`).get();
  if (row === undefined) throw new Error(`There is no filing where ${condition}.`);
  return row;
}

/** The newest TRANSFER of the filing that was sold. */
const lastTransfer = `${sold} AND position = (SELECT max(position) FROM provenance_record WHERE ${sold})`;

function nameOfLastTransfer(client: Sqlite.Database): string {
  const named = `SELECT 'record ' || position || ' of ' || filing_no FROM provenance_record WHERE ${lastTransfer}`;
  return String(client.prepare(named).pluck().get());
}

/** A forgery of one filing by SQL, named by its number. */
const ofFiling = (name: string, what: string, condition: string, change: string): Forgery => ({
  ...{ name, what },
  forge: (client) => {
    const { filing_no: filingNo } = filingWhere(client, condition);
    client.exec(`${change} WHERE ${condition}`);
    return filingNo;
  },
});

/** A forgery of the newest TRANSFER of the filing that was sold, by SQL. */
const ofTransfer = (name: string, what: string, change: string): Forgery => ({
  ...{ name, what },
  forge: (client) => {
    const transfer = nameOfLastTransfer(client);
    client.exec(`${change} WHERE ${lastTransfer}`);
    return transfer;
  },
});

/** Changes the author of a filing and its hash. Returns the row and the leaf that fits it. */
function forgeAuthor(client: Sqlite.Database): FilingRow & { readonly data: string } {
  const row = { ...filingWhere(client, middle), author: 'Zhang Daqian' };
  const { hash, data } = leafOfFiling(client, row);
  client.prepare('UPDATE filing SET author = ?, hash = ? WHERE id = ?').run(row.author, hash, row.id);
  return { ...row, data };
}

const emptied = `UPDATE filing SET author = '', era = '', size = '', material = '', condition = '', price = 0,
  hash = '', salt = NULL, erased_at_s = (SELECT max(erased_at_s) FROM filing)`;

/** Appends a RECORDS_ERASED event of that leaf to the log, like the product. Returns its time. */
function appendErasure(client: Sqlite.Database, leafIndex: number): number {
  const [sequence, timeS] = client
    .prepare<[], [number, number]>(
      'SELECT (SELECT max(sequence) + 1 FROM log_event), (SELECT max(filed_at_s) FROM filing)',
    )
    .raw()
    .get() ?? [0, 0];
  const detail = { records: 1, leaves: String(leafIndex), before: timeS - 6 * 366 * 86_400 };
  const kind = 'RECORDS_ERASED';
  const index = appendForged(client, logEventLeafData({ kind, sequence, timeS, detail }));
  client
    .prepare('INSERT INTO log_event (sequence, kind, detail, time_s, leaf_index) VALUES (?, ?, ?, ?, ?)')
    .run(sequence, kind, JSON.stringify(detail), timeS, index);
  return timeS;
}

/** The forgeries, each of a database of its own. */
export const forgeries: readonly Forgery[] = [
  {
    name: 'row, leaf text and leaf hash',
    what: 'a filing has another author, and its evidence hash, leaf text and leaf hash are changed to match',
    forge: (client) => {
      const { leaf_index: index, filing_no: filingNo, data } = forgeAuthor(client);
      rewriteLeaf(client, index, data);
      return filingNo;
    },
  },
  {
    name: 'whole tree and kept checkpoint',
    what: 'the same, with all hashes of the tree and the root in the kept checkpoint, without the key',
    forge: (client) => {
      const { leaf_index: index, data } = forgeAuthor(client);
      const root = Buffer.from(rootOf(rewriteTree(client, index, data).roots)).toString('base64');
      const [size, note] = client
        .prepare<[], [number, string]>('SELECT size, note FROM log_checkpoint ORDER BY size DESC LIMIT 1')
        .raw()
        .get() ?? [0, ''];
      const lines = note.split('\n').with(2, root);
      client.prepare('UPDATE log_checkpoint SET note = ? WHERE size = ?').run(lines.join('\n'), size);
      return `checkpoint of ${size} leaves`;
    },
  },
  ofFiling('newest filing deleted', 'the row of the newest filing is missing', newest, 'DELETE FROM filing'),
  ofFiling('middle filing deleted', 'the row of an earlier filing is missing', middle, 'DELETE FROM filing'),
  ofTransfer(
    'transfer deleted',
    'the newest TRANSFER record of a filing is missing',
    'DELETE FROM provenance_record',
  ),
  ofTransfer(
    'transfer without its salt',
    'a TRANSFER record has another date and no salt',
    "UPDATE provenance_record SET salt = NULL, at = '2026-01-01'",
  ),
  ofFiling('faked erasure', 'a filing is emptied and marked as erased', middle, emptied),
  {
    name: 'faked erasure with its event',
    what: 'the same for the newest filing, with a RECORDS_ERASED event and its leaf',
    forge: (client) => {
      const { filing_no: filingNo, leaf_index: index, id } = filingWhere(client, newest);
      const timeS = appendErasure(client, index);
      client.exec(`${emptied} WHERE id = ${id}`);
      client.prepare('UPDATE filing SET erased_at_s = ? WHERE id = ?').run(timeS, id);
      return filingNo;
    },
  },
  {
    name: 'caller_id',
    what: 'a filing belongs to the other platform',
    forge: (client) => {
      const { filing_no: filingNo, id, caller_id: owner } = filingWhere(client, middle);
      client
        .prepare(
          'UPDATE filing SET caller_id = (SELECT max(caller_id) FROM filing WHERE caller_id <> ?) WHERE id = ?',
        )
        .run(owner, id);
      return filingNo;
    },
  },
  ofFiling(
    'filed_at_s',
    'the time of a filing is a day earlier, its timestamp is unchanged',
    middle,
    'UPDATE filing SET filed_at_s = filed_at_s - 86400',
  ),
  ofTransfer(
    'recorded_at_s',
    'the time of a TRANSFER record is six years earlier',
    'UPDATE provenance_record SET recorded_at_s = recorded_at_s - 6 * 366 * 86400',
  ),
  {
    name: 'number_gap',
    what: 'a gap in the numbers is one number shorter',
    forge: (client) => {
      const gap = "kind = 'FILING' AND after = (SELECT max(after) FROM number_gap WHERE kind = 'FILING')";
      client.exec(`UPDATE number_gap SET through = through - 1 WHERE ${gap}`);
      const [year, after] = client
        .prepare<[], [number, number]>(`SELECT year, after FROM number_gap WHERE ${gap}`)
        .raw()
        .get() ?? [0, 0];
      return `AS-${year}-${String(after + 1).padStart(6, '0')}`;
    },
  },
  {
    name: 'log_key',
    what: 'the verifier key of the checkpoints is another one of the same name',
    forge: (client) => {
      const [id, vkey] = client
        .prepare<[], [number, string]>('SELECT id, vkey FROM log_key ORDER BY id DESC LIMIT 1')
        .raw()
        .get() ?? [0, ''];
      const forged = noteKey(vkey.slice(0, vkey.indexOf('+')), Buffer.alloc(32, 0x11)).vkey;
      client.prepare('UPDATE log_key SET vkey = ? WHERE id = ?').run(forged, id);
      return forged;
    },
  },
];
