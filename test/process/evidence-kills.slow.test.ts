import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type BookedLog, checkLog, readCheckpoint, readLog } from '../../simulation/evidence.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { readDatabase, skipOnPostgres } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { type Answered, postAll, prepare, storedFilings } from '../support/filing-load.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { createRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';

/** A kill and the next start take about a second. CI sets a hundred. */
const kills = Number(process.env.ARTSEAL_TEST_KILLS ?? 6);

/** So many that no platform exceeds its burst of 200. */
const platforms = 8;

/** How often the published checkpoint is looked at, in milliseconds. */
const watchEveryMs = 20;

/** Responses until a kill, at most, and filings that are signed before: more than get a response. */
const answersMax = 80;
const filingsOfLife = 300;

/** Files until so many have a response, and then kills the service with dozens of calls in flight. */
async function fileUntilKilled(
  service: WatchedService,
  issued: readonly IssuedPlatform[],
  life: number,
  answers: number,
): Promise<Answered[]> {
  const answered: Answered[] = [];
  const waiting = prepare(issued, filingsOfLife, (life - 1) * filingsOfLife + 1);
  await postAll(
    service.publicUrl,
    waiting,
    (answer) => {
      answered.push(answer);
      if (answered.length === answers) service.child.kill('SIGKILL');
    },
    () => answered.length >= answers,
  );
  assert.equal(await service.stop('SIGKILL'), null);
  return answered;
}

/** The tree of the published checkpoint; undefined if the service does not run, or has published none. */
async function seeCheckpoint(publicUrl: string) {
  try {
    const response = await fetch(`${publicUrl}/log/checkpoint`);
    const note = await response.text();
    return response.status === 200 ? readCheckpoint(note) : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the published checkpoint repeatedly until the service has ended. Returns all that it read. */
async function watch({ child, publicUrl }: WatchedService, shown: Map<number, string>): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const seen = await seeCheckpoint(publicUrl);
    if (seen !== undefined) {
      assert.equal(shown.get(seen.size) ?? seen.root, seen.root, `two trees of ${seen.size} leaves`);
      shown.set(seen.size, seen.root);
    }
    await delay(watchEveryMs);
  }
}

const readBookedLog = (dataDir: string): Promise<BookedLog> =>
  readDatabase(dataDir, (client) => readLog(client, dataDir));

/** Asserts that responses agree with the records, records with the tree, and that the tree continues all that were published. */
async function agree(
  dataDir: string,
  answered: readonly Answered[],
  shown: ReadonlyMap<number, string>,
): Promise<void> {
  checkLog(await readBookedLog(dataDir), shown);
  const stored = new Map((await storedFilings(dataDir)).map((filing) => [filing.filingNo, filing]));
  for (const { filingNo, author, hash, timestamp } of answered) {
    assert.deepEqual(stored.get(filingNo), { filingNo, author, hash, timestamp });
  }
}

/** Waits until all records are published: file, database and API have the same checkpoint. */
async function allIsPublished(dataDir: string, publicUrl: string): Promise<void> {
  await eventually('a checkpoint of all leaves', 60_000, async () => {
    const { leaves, checkpoints } = await readBookedLog(dataDir);
    const published = [checkpoints.file, checkpoints.database, await seeCheckpoint(publicUrl)];
    return published.every((one) => one?.size === leaves.length && one.root === published[0]?.root);
  });
}

test(`log, records and checkpoints agree after each of ${kills} kills under load`, {
  timeout: 60_000 + kills * 20_000,
}, async (t: TestContext) => {
  const random = createRandom();
  t.diagnostic(`seed ${random.seed}`);
  const dataDir = temporaryFolder(t);
  const { platforms: issued } = await issueInto(dataDir, platforms);
  const shown = new Map<number, string>();
  const answered: Answered[] = [];
  for (let life = 1; life <= kills; life += 1) {
    const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
    await agree(dataDir, answered, shown);
    const watching = watch(service, shown);
    answered.push(...(await fileUntilKilled(service, issued, life, 1 + random.below(answersMax))));
    await watching;
  }
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  await agree(dataDir, answered, shown);
  await allIsPublished(dataDir, service.publicUrl);
  t.diagnostic(`${answered.length} filings were answered, ${shown.size} checkpoints were seen`);
  assert.ok(shown.size >= kills - 1, 'each life but the first shows what the one before left');
  assert.equal(await service.stop('SIGTERM'), 0);
  await agree(dataDir, answered, shown);
});

test('after a bit flip in the write-ahead log of a killed process, nothing published is lost without an error', {
  timeout: 120_000,
  skip: skipOnPostgres('the log is that of SQLite'),
}, async (t: TestContext) => {
  const dataDir = temporaryFolder(t);
  const { platforms: issued } = await issueInto(dataDir, platforms);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const answered: Answered[] = [];
  await postAll(service.publicUrl, prepare(issued, 200), (answer) => answered.push(answer));
  await allIsPublished(dataDir, service.publicUrl);
  assert.equal(await service.stop('SIGKILL'), null);
  const outcomes = [];
  for (const place of [0.1, 0.5, 0.9, 1]) {
    outcomes.push(await startWithFlippedBit(t, dataDir, place, answered));
  }
  assert.deepEqual(outcomes.slice(0, 3), ['rejected', 'rejected', 'rejected']);
});

/** Starts a service on a copy with one flipped bit in the write-ahead log: all records exist, or the start fails. */
async function startWithFlippedBit(
  t: TestContext,
  dataDir: string,
  place: number,
  answered: readonly Answered[],
): Promise<'rejected' | 'complete'> {
  const copy = join(temporaryFolder(t), 'copy');
  copyFolder(dataDir, copy);
  const log = join(copy, 'artseal.db-wal');
  const bytes = readFileSync(log);
  const at = Math.floor((statSync(log).size - 1) * place);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(log, bytes);
  const started = await serveWatched(t, { ARTSEAL_DATA_DIR: copy }).catch((error: Error) => error);
  if (started instanceof Error) {
    assert.match(
      started.message,
      /the database is older than what was published: it has \d+ leaves, and \S+/,
    );
    assert.match(started.message, /artseal evidence fork --accept/);
    return 'rejected';
  }
  await agree(copy, answered, new Map());
  assert.equal(await started.stop('SIGTERM'), 0);
  return 'complete';
}
