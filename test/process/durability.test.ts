import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { checkLog, readCheckpoint, readLog } from '../../simulation/evidence.ts';
import { readDatabase } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answered,
  connections,
  type Prepared,
  post,
  postAll,
  prepare,
  storedFilings,
} from '../support/filing-load.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { createRandom } from '../support/random.ts';
import { assertRejected } from '../support/rejected.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';

const filings = 200;
/** A kill with its checks takes three seconds. CI sets fifty. */
const kills = Number(process.env.ARTSEAL_TEST_KILLS ?? 1);
/** Responses until a kill, at most. */
const answersMax = 120;
const target = '/api/v1/filing';

/** Checks each item, 16 at a time. */
async function each<T>(items: readonly T[], check: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const work = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await check(item);
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

/** Reads the published checkpoint until the service has ended. Adds the root of each size to `shown`. */
async function watchCheckpoints({ child, publicUrl }: WatchedService, shown: Map<number, string>) {
  while (child.exitCode === null && child.signalCode === null) {
    const note = await fetch(`${publicUrl}/log/checkpoint`).then(
      (response) => (response.ok ? response.text() : undefined),
      () => undefined,
    );
    if (note !== undefined) {
      const { size, root } = readCheckpoint(note);
      assert.equal(shown.get(size) ?? root, root, `two trees of ${size} leaves`);
      shown.set(size, root);
    }
    await delay(20);
  }
}

/** Asserts that all filings are in the database as answered. */
async function allAreThere(dataDir: string, answered: readonly Answered[]): Promise<void> {
  const stored = new Map((await storedFilings(dataDir)).map((filing) => [filing.filingNo, filing]));
  for (const { filingNo, author, hash, timestamp } of answered)
    assert.deepEqual(stored.get(filingNo), { filingNo, author, hash, timestamp });
}

async function noncesAreSpent(publicUrl: string, answered: readonly Answered[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  await each(answered, async (sent) => {
    const answer = await post(agent, publicUrl, sent);
    assert.ok(answer);
    assertRejected(answer, 401, 'NONCE_REUSED');
  });
  agent.destroy();
}

/** Asserts that numbers have no gap and no double, and that every stored filing was sent once. */
async function numbersAreConsecutive(dataDir: string, answered: number): Promise<void> {
  const stored = await storedFilings(dataDir);
  const year = stored[0]?.filingNo.slice(3, 7);
  assert.deepEqual(
    stored.map(({ filingNo }) => filingNo),
    stored.map((_, place) => `AS-${year}-${String(place + 1).padStart(6, '0')}`),
  );
  assert.equal(new Set(stored.map(({ author }) => author)).size, stored.length);
  const lost = stored.length - answered;
  assert.ok(lost >= 0 && lost <= connections, `${lost} are stored whose response was lost`);
}

/** Asserts that the database is sound, and that each call was counted once: those that filed, and a rejected one. */
async function databaseIsSound(dataDir: string, rejected: IssuedPlatform): Promise<void> {
  await readDatabase(dataDir, (client) => {
    assert.equal(client.pragma('integrity_check', { simple: true }), 'ok');
    assert.deepEqual(client.pragma('foreign_key_check'), []);
    const counted = client
      .prepare('SELECT name, sum(calls) FROM usage JOIN caller ON caller.id = caller_id GROUP BY name')
      .raw();
    const filed = client.prepare(
      `SELECT name, count(*) + (name = ?) FROM filing JOIN caller ON caller.id = caller_id GROUP BY name`,
    );
    assert.deepEqual(counted.all().toSorted(), filed.raw().all(rejected.caller).toSorted());
  });
}

/** A retry has a new timestamp, nonce and signature; its Idempotency-Key says that it is the same filing. */
async function retriesFileOnce(publicUrl: string, dataDir: string, lost: readonly Prepared[]): Promise<void> {
  const before = new Map((await storedFilings(dataDir)).map(({ author, filingNo }) => [author, filingNo]));
  await each(lost, async ({ platform, body, idempotencyKey, author }) => {
    const sent = { target, body, headers: { 'Idempotency-Key': idempotencyKey } };
    const answer = await send(publicUrl, platform, sent);
    assert.equal(answer.status, 200, answer.text);
    const filed = before.get(author);
    assert.equal(answer.headers['idempotent-replayed'], filed === undefined ? undefined : 'true');
    if (filed !== undefined) assert.equal(answer.json.filingNo, filed);
  });
  const stored = await storedFilings(dataDir);
  assert.equal(stored.length, filings);
  assert.equal(new Set(stored.map(({ author }) => author)).size, filings);
}

for (let kill = 1; kill <= kills; kill += 1)
  test(
    `an answered call is on disk: kill -9 under load loses none: ${kill} of ${kills}`,
    {
      timeout: 300_000,
    },
    survivesKill,
  );

async function survivesKill(t: TestContext): Promise<void> {
  const random = createRandom();
  const killedAfter = 1 + random.below(answersMax);
  t.diagnostic(`seed ${random.seed}: killed after ${killedAfter} responses`);
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 4);
  const [platform] = platforms as [IssuedPlatform];
  const waiting = prepare(platforms, filings);
  const answered: Answered[] = [];
  const killed = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const shown = new Map<number, string>();
  const watching = [watchCheckpoints(killed, shown)];
  await eventually('the first checkpoint', 60_000, () => shown.size > 0);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const invalid = { target, body: '{}', nonce: 'n-1', timestamp };
  assertRejected(await send(killed.publicUrl, platform, invalid), 400, 'VALIDATION_FAILED');
  let isKilled = false;
  const onAnswer = (answer: Answered) => {
    answered.push(answer);
    if (isKilled || answered.length < killedAfter) return;
    isKilled = true;
    killed.child.kill('SIGKILL');
  };
  const lost = await postAll(killed.publicUrl, waiting, onAnswer, () => isKilled);
  assert.equal(await killed.stop('SIGKILL'), null);
  assert.ok(answered.length < filings, `${answered.length} were answered`);

  const again = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const known = shown.size;
  watching.push(watchCheckpoints(again, shown));
  await t.test('the database is sound, and has counted each call', () => databaseIsSound(dataDir, platform));
  await t.test('every filing that was answered is there', () => allAreThere(dataDir, answered));
  await t.test('the nonce of every answered call is spent', async () => {
    await noncesAreSpent(again.publicUrl, answered);
    assertRejected(await send(again.publicUrl, platform, invalid), 401, 'NONCE_REUSED');
  });
  await t.test('the numbers are consecutive', () => numbersAreConsecutive(dataDir, answered.length));
  await t.test('the rest is filed, and every retry of a lost filing files once', async () => {
    assert.deepEqual(await postAll(again.publicUrl, waiting, (answer) => answered.push(answer)), []);
    assert.equal(answered.length + lost.length, filings);
    await retriesFileOnce(again.publicUrl, dataDir, lost);
    await numbersAreConsecutive(dataDir, filings);
    await allAreThere(dataDir, answered);
  });
  await t.test(
    'after another kill each record has its leaf, and the tree continues all published ones',
    async () => {
      await eventually('a checkpoint of this process', 60_000, () => shown.size > known);
      assert.equal(await again.stop('SIGKILL'), null);
      await Promise.all(watching);
      checkLog(await readDatabase(dataDir, (client) => readLog(client, [dataDir])), shown);
    },
  );
}
