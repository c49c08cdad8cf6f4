import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { type BookedLog, checkLog, readLog } from '../../simulation/evidence.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { fileOne, noon, sandbox } from '../store/promises/fixtures.ts';
import { artsealWith } from '../support/artseal.ts';
import { askProvenance, fileArtwork } from '../support/calls.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { readDatabase } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { postAll, prepare, storedFilings } from '../support/filing-load.ts';
import { issueInto, serveIssued } from '../support/issued.ts';
import { scrape } from '../support/metrics.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, runCommand, serveWatched } from '../support/watched-command.ts';

/** The longest wait for an event. */
const timeoutMs = 60_000;
/** Enough for a page that neither the start nor new filings read. */
const filings = 200;

/** Overwrites the page of a table that contains a text. */
function overwritePage(file: string, table: string, text: string): void {
  const client = new Sqlite(file, { readonly: true });
  const pages = client
    .prepare<[string], { pgoffset: number; pgsize: number }>(
      "SELECT pgoffset, pgsize FROM dbstat WHERE name = ? AND pagetype = 'leaf'",
    )
    .all(table);
  client.close();
  const bytes = readFileSync(file);
  const page = pages.find(({ pgoffset, pgsize }) =>
    bytes.subarray(pgoffset, pgoffset + pgsize).includes(text),
  );
  assert.ok(page);
  bytes.fill(0xa5, page.pgoffset, page.pgoffset + page.pgsize);
  writeFileSync(file, bytes);
}

test('a damaged page makes the server not ready until its end, is counted and logged, and found by check and the next start', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = temporaryFolder(t);
  const { platform } = await issueInto(dataDir, 1);
  const store = createSqliteStore({ dataDir, ...sandbox });
  const by = { callerId: 1, caller: platform.caller };
  const numbers = await Promise.all(Array.from({ length: filings }, () => fileOne(store, by, noon)));
  await store.close();
  const [damaged, sound] = [numbers[filings / 2] ?? '', numbers.at(-1) ?? ''];
  overwritePage(join(dataDir, 'artseal.db'), 'filing', damaged);

  const env = { ARTSEAL_DATA_DIR: dataDir };
  const service = await serveWatched(t, env);
  const ready = async () => {
    const answer = await fetch(`${service.publicUrl}/readyz`);
    return [answer.status, ((await answer.json()) as { message?: string }).message];
  };
  const provenance = async (filingNo: string) => (await askProvenance(service, platform, filingNo)).status;
  const counted = async () =>
    (await scrape(service.metricsUrl)).value('artseal_damaged_record_reads_total') ?? 0;
  await eventually('it is ready, as nothing has read the page', timeoutMs, async () => {
    return (await ready())[0] === 200;
  });
  assert.equal(await counted(), 0);

  assert.equal(await provenance(damaged), 500);
  const assertNotReady = async (when: string) => {
    const [status, message] = await ready();
    assert.equal(status, 503, when);
    // If a write takes a second, the store is not ready either.
    assert.match(String(message), /^Not ready: (store, )?database\.$/, when);
  };
  await assertNotReady('at once');
  assert.equal(await provenance(sound), 200, 'what can be read is returned');
  await assertNotReady('until the process ends');
  await eventually('it is counted', timeoutMs, async () => (await counted()) > 0);
  const isReady = async (part: string) =>
    (await scrape(service.metricsUrl)).value('artseal_ready_part', { part });
  assert.equal(await isReady('database'), 0);
  await eventually('the store can write', timeoutMs, async () => (await isReady('store')) === 1);
  await eventually('it is logged', timeoutMs, () =>
    /"msg":"not ready: (store, )?database"\}\n/.test(service.stderr()),
  );
  const lines = service.logged();
  const [error] = lines.filter(({ level, msg }) => level === 50 && msg.startsWith('the database is damaged'));
  assert.match(
    error.fault,
    /malformed.*restore the last backup.*docs\/operate\/incidents\/database-damaged\.md/,
  );
  const [line] = lines.filter(({ msg }) => /^not ready: (store, )?database$/.test(msg));
  const [fault] = line.faults.filter(({ part }: { part: string }) => part === 'database');
  assert.equal(fault.fault, error.fault);

  const { code, stdout } = await runCommand(['check'], env);
  assert.equal(code, 1);
  assert.match(stdout, /^fault +database .*damaged.*restore a backup/m);

  await service.stop();
  assertOneLine(await runBounded(t, ['serve'], env), 1, /artseal\.db is damaged: /);
  assertOneLine(await runBounded(t, ['serve'], env), 1, /artseal\.db is damaged: /);
});

test('a service that cannot read its credentials does not start', { timeout: 300_000 }, async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  overwritePage(join(dataDir, 'artseal.db'), 'api_key', platforms[0]?.keyId ?? '');
  assertOneLine(await runBounded(t, ['serve'], { ARTSEAL_DATA_DIR: dataDir }), 1, /artseal\.db is damaged: /);
});

const checked = /was not closed when it was served last, or was found damaged: it was checked/;

/** A data folder with a filing, whose server was stopped by a signal. */
async function served(t: TestContext, signal: NodeJS.Signals): Promise<string> {
  const server = await serveIssued(t);
  assert.equal((await fileArtwork(server, server.platform)).status, 200);
  await server.stop(signal);
  return server.dataDir;
}

test('a database is checked before the listeners open after kill -9, and not after a clean stop', async (t) => {
  const dataDir = await served(t, 'SIGKILL');
  const service = await startService(t, { dataDir });
  const line = service.logLines.find((each) => checked.test(each)) ?? assert.fail();
  assert.equal(typeof JSON.parse(line).ms, 'number');
  await service.close();
  const again = await startService(t, { dataDir, isStoreInThisThread: false });
  assert.equal(
    again.logLines.find((each) => checked.test(each)),
    undefined,
  );
});

test('a command checks the database after kill -9 as well, so the next start need not', async (t) => {
  const dataDir = await served(t, 'SIGKILL');
  const record = join(dataDir, 'serving.json');
  assert.ok(existsSync(record));
  await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).list('key list');
  assert.ok(!existsSync(record));
  const { logLines } = await startService(t, { dataDir });
  assert.ok(!logLines.some((line) => checked.test(line)));
});

test('a damaged database is rejected after kill -9, with the message of SQLite and what to do', async (t) => {
  const dataDir = await served(t, 'SIGKILL');
  const file = join(dataDir, 'artseal.db');
  // Pages in the WAL would hide those in the database.
  const raw = new Sqlite(file);
  raw.pragma('wal_checkpoint(TRUNCATE)');
  raw.close();
  assert.ok(!existsSync(`${file}-wal`), 'only the serving record shows that it was killed');
  overwritePage(file, 'log_leaf', '"kind"');
  const damaged = await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).errors(1, 'key list');
  assert.match(damaged, /artseal\.db is damaged: /);
  for (const isStoreInThisThread of [true, false])
    await assert.rejects(startService(t, { dataDir, isStoreInThisThread }), {
      name: 'DatabaseError',
      message: /artseal\.db is damaged: .*(page|malformed).*artseal restore.*database-damaged\.md/s,
    });
});

const openBook = (dataDir: string): Promise<BookedLog> =>
  readDatabase(dataDir, (client) => readLog(client, [dataDir]));

/** The outcome of a start on a copy with one flipped bit in the write-ahead log: all filings are there, or it fails. */
async function startWithFlippedBit(
  t: TestContext,
  dataDir: string,
  place: number,
  answered: readonly string[],
): Promise<'rejected' | 'complete'> {
  const copy = join(temporaryFolder(t), 'copy');
  copyFolder(dataDir, copy);
  const log = join(copy, 'artseal.db-wal');
  const bytes = readFileSync(log);
  const at = Math.floor((bytes.length - 1) * place);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(log, bytes);
  const started = await serveWatched(t, { ARTSEAL_DATA_DIR: copy }).catch((error: Error) => error);
  if (started instanceof Error) {
    assert.match(
      started.message,
      /the database is older than what was published: it has \d+ leaves.*artseal evidence fork --accept/s,
    );
    return 'rejected';
  }
  checkLog(await openBook(copy), new Map());
  const stored = await storedFilings(copy);
  assert.deepEqual(
    stored.map(({ filingNo }) => filingNo),
    answered.toSorted(),
  );
  assert.equal(await started.stop('SIGTERM'), 0);
  return 'complete';
}

test('after a bit flip in the write-ahead log of a killed process, nothing published is lost without an error', {
  timeout: 120_000,
}, async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 8);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const answered: string[] = [];
  await postAll(service.publicUrl, prepare(platforms, 200), ({ filingNo }) => answered.push(filingNo));
  await eventually('a checkpoint of all leaves', timeoutMs, async () => {
    const { leaves, checkpoints } = await openBook(dataDir);
    return [checkpoints.files[0], checkpoints.database].every((one) => one?.size === leaves.length);
  });
  assert.equal(await service.stop('SIGKILL'), null);
  const outcomes = [];
  for (const place of [0.1, 0.5, 0.9, 1])
    outcomes.push(await startWithFlippedBit(t, dataDir, place, answered));
  assert.deepEqual(outcomes.slice(0, 3), ['rejected', 'rejected', 'rejected']);
});
