import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type BookedLog, checkLog, readCheckpoint, readLog } from '../../simulation/evidence.ts';
import { type ServeProcess, serveCommand } from '../support/command.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { eventually } from '../support/eventually.ts';
import { type Answered, postAll, prepare, readDatabase, storedFilings } from '../support/filing-load.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { createRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A kill and the start behind it take about a second: CI has a hundred of them. */
const kills = Number(process.env.ARTSEAL_TEST_KILLS ?? 6);

/** So many that no platform's share is beyond its burst of 200. */
const platforms = 8;

/** How often the published checkpoint is looked at, in milliseconds. */
const watchEveryMs = 20;

/** Answers until a kill, at most, and filings that are signed for each life: more than can be answered until then. */
const answersMax = 80;
const filingsOfLife = 300;

/** Files until so many are answered, and kills the service then, with dozens of calls under way. */
async function fileUntilKilled(
  service: ServeProcess,
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

/** The tree that the published checkpoint has; undefined if the service is not there, or has published none. */
async function seeCheckpoint(publicUrl: string) {
  try {
    const response = await fetch(`${publicUrl}/log/checkpoint`);
    const note = await response.text();
    return response.status === 200 ? readCheckpoint(note) : undefined;
  } catch {
    return undefined;
  }
}

/** Looks at the published checkpoint again and again until the service is gone, and remembers what was shown. */
async function watch({ child, publicUrl }: ServeProcess, shown: Map<number, string>): Promise<void> {
  while (child.exitCode === null && child.signalCode === null) {
    const seen = await seeCheckpoint(publicUrl);
    if (seen !== undefined) {
      assert.equal(shown.get(seen.size) ?? seen.root, seen.root, `two trees of ${seen.size} leaves`);
      shown.set(seen.size, seen.root);
    }
    await delay(watchEveryMs);
  }
}

/** What was answered is stored as answered, and what is stored is in the tree, which begins with those that were shown. */
function agree(dataDir: string, answered: readonly Answered[], shown: ReadonlyMap<number, string>): void {
  checkLog(readDatabase(dataDir, readLog), shown);
  const stored = new Map(storedFilings(dataDir).map((filing) => [filing.filingNo, filing]));
  for (const { filingNo, author, hash, timestamp } of answered) {
    assert.deepEqual(stored.get(filingNo), { filingNo, author, hash, timestamp });
  }
}

/** Waits until all that is stored is published: file, database and what is shown have the same checkpoint. */
async function allIsPublished(dataDir: string, publicUrl: string): Promise<void> {
  await eventually('a checkpoint of all leaves', 60_000, async () => {
    const { leaves, checkpoints }: BookedLog = readDatabase(dataDir, readLog);
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
    const service = await serveCommand(t, { ARTSEAL_DATA_DIR: dataDir });
    agree(dataDir, answered, shown);
    const watching = watch(service, shown);
    answered.push(...(await fileUntilKilled(service, issued, life, 1 + random.below(answersMax))));
    await watching;
  }
  const service = await serveCommand(t, { ARTSEAL_DATA_DIR: dataDir });
  agree(dataDir, answered, shown);
  await allIsPublished(dataDir, service.publicUrl);
  t.diagnostic(`${answered.length} filings were answered, ${shown.size} checkpoints were seen`);
  assert.ok(shown.size >= kills - 1, 'each life but the first shows what the one before left');
  assert.equal(await service.stop('SIGTERM'), 0);
  agree(dataDir, answered, shown);
});

test('a bit flipped in the write-ahead log of a killed process loses nothing that was published unnoticed', {
  timeout: 120_000,
}, async (t: TestContext) => {
  const dataDir = temporaryFolder(t);
  const { platforms: issued } = await issueInto(dataDir, platforms);
  const service = await serveCommand(t, { ARTSEAL_DATA_DIR: dataDir });
  const answered: Answered[] = [];
  await postAll(service.publicUrl, prepare(issued, 200), (answer) => answered.push(answer));
  await allIsPublished(dataDir, service.publicUrl);
  assert.equal(await service.stop('SIGKILL'), null);
  const outcomes = [];
  for (const place of [0.1, 0.5, 0.9, 1]) {
    outcomes.push(await startWithFlippedBit(t, dataDir, place, answered));
  }
  assert.deepEqual(outcomes.slice(0, 3), ['refused', 'refused', 'refused']);
});

/** Starts a service on a copy in whose write-ahead log one bit is another: all is there, or the start is refused. */
async function startWithFlippedBit(
  t: TestContext,
  dataDir: string,
  place: number,
  answered: readonly Answered[],
): Promise<'refused' | 'complete'> {
  const copy = join(temporaryFolder(t), 'copy');
  copyFolder(dataDir, copy);
  const log = join(copy, 'artseal.db-wal');
  const bytes = readFileSync(log);
  const at = Math.floor((statSync(log).size - 1) * place);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(log, bytes);
  const started = await serveCommand(t, { ARTSEAL_DATA_DIR: copy }).catch((error: Error) => error);
  if (started instanceof Error) {
    assert.match(started.message, /the database is older than what was published: it has \d+ leaves, and \S+/);
    assert.match(started.message, /artseal evidence fork --accept/);
    return 'refused';
  }
  agree(copy, answered, new Map());
  assert.equal(await started.stop('SIGTERM'), 0);
  return 'complete';
}
