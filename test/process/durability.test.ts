import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { test } from 'node:test';
import {
  type Answered,
  connections,
  type Prepared,
  post,
  postAll,
  prepare,
  readDatabase,
  storedFilings,
} from '../support/filing-load.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { assertRefused } from '../support/rejected.ts';
import { artwork } from '../support/samples.ts';
import { type RestAnswer, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { serveWatched } from '../support/watched-command.ts';

const filings = 200;
/** Enough platforms that the share of each is within its burst of 200. */
const platforms = 8;
const target = '/api/v1/filing';

const numbers = (count: number, year: string): string[] =>
  Array.from({ length: count }, (_, place) => `AS-${year}-${String(place + 1).padStart(6, '0')}`);

const yearOf = (filingNo: string): string => filingNo.slice(3, 7);

/** Checks each item, 16 at a time. */
async function each<T>(items: readonly T[], check: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const work = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await check(item);
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

/** Asserts that all filings are in the database as answered, and that both APIs return the fresh ones. */
async function allAreThere(
  dataDir: string,
  service: { publicUrl: string; internalUrl: string },
  token: string,
  answered: readonly Answered[],
  fresh: readonly Answered[],
): Promise<void> {
  const stored = new Map(storedFilings(dataDir).map((filing) => [filing.filingNo, filing]));
  for (const { filingNo, author, hash, timestamp } of answered) {
    assert.deepEqual(stored.get(filingNo), { filingNo, author, hash, timestamp });
  }
  await each(fresh, async ({ platform, filingNo, author, hash, timestamp }) => {
    const got = await typedCall(service.internalUrl, token, 'FilingService/GetFiling', { filingNo });
    assert.equal(got.status, 200, JSON.stringify(got.json));
    const filing = got.json.filing;
    assert.deepEqual(
      [filing.filingNo, filing.author, filing.hash, filing.timestamp, filing.caller],
      [filingNo, author, hash, timestamp, platform.caller],
    );
    const provenance = await send(service.publicUrl, platform, { target: `/api/v1/provenance/${filingNo}` });
    assert.deepEqual(provenance.json, {
      filingNo,
      author,
      records: [{ event: 'SUBMITTED', at: timestamp.slice(0, 10) }],
      retentionYears: 5,
    });
  });
}

async function noncesAreSpent(publicUrl: string, answered: readonly Answered[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  await each(answered, async (sent) => {
    const answer = await post(agent, publicUrl, sent);
    assert.ok(answer);
    assertRefused(answer, 401, 'NONCE_REUSED');
  });
  agent.destroy();
}

/** Asserts that numbers have no gap and no double, and that every stored filing was sent. */
function numbersAreConsecutive(dataDir: string, answered: number, kills: number): void {
  const stored = storedFilings(dataDir);
  const year = yearOf(stored[0]?.filingNo ?? '');
  assert.deepEqual(
    stored.map(({ filingNo }) => filingNo),
    numbers(stored.length, year),
  );
  assert.equal(new Set(stored.map(({ author }) => author)).size, stored.length, 'each was filed once');
  const lost = stored.length - answered;
  assert.ok(lost >= 0 && lost <= kills * connections, `${lost} are there whose answer was lost`);
}

function databaseIsSound(dataDir: string, answered: readonly Answered[]): void {
  readDatabase(dataDir, (client) => {
    assert.equal(client.pragma('integrity_check', { simple: true }), 'ok');
    assert.deepEqual(client.pragma('foreign_key_check'), []);
    const counts = `SELECT name, calls FROM usage JOIN caller ON caller.id = caller_id`;
    const calls = new Map(client.prepare(counts).raw().all() as [string, number][]);
    for (const [caller, of] of Map.groupBy(answered, ({ platform }) => platform.caller)) {
      assert.ok((calls.get(caller) ?? 0) >= of.length, `${caller} was counted ${calls.get(caller)} times`);
    }
  });
}

test('an answered call is on disk: kill -9 under load loses none', { timeout: 300_000 }, async (t) => {
  const dataDir = temporaryFolder(t);
  const issued = await issueInto(dataDir, platforms);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const waiting = prepare(issued.platforms, filings);
  const answered: Answered[] = [];
  const lost: Prepared[] = [];
  const killAfter = [80];

  for (const [place, limit] of killAfter.entries()) {
    const killed = await serveWatched(t, env);
    const before = answered.length;
    let isKilled = false;
    const unanswered = await postAll(
      killed.publicUrl,
      waiting,
      (answer) => {
        answered.push(answer);
        if (isKilled || answered.length < limit) return;
        isKilled = true;
        killed.child.kill('SIGKILL');
      },
      () => isKilled,
    );
    lost.push(...unanswered);
    assert.equal(await killed.stop('SIGKILL'), null);
    assert.ok(answered.length >= limit && answered.length < filings, `${answered.length} were answered`);

    const again = await serveWatched(t, env);
    // The last ones are those that a lost write would lose.
    const fresh = answered.slice(before).slice(-40);
    await t.test(`every filing answered before kill ${place + 1} is there as answered`, () =>
      allAreThere(dataDir, again, issued.token, answered, fresh),
    );
    await t.test(`every nonce answered before kill ${place + 1} stays spent`, () =>
      noncesAreSpent(again.publicUrl, fresh),
    );
    await t.test(`the numbers given before kill ${place + 1} are consecutive`, () =>
      numbersAreConsecutive(dataDir, answered.length, place + 1),
    );
    await t.test(`the database that kill ${place + 1} left is sound`, () =>
      databaseIsSound(dataDir, answered),
    );
    await t.test(`the next number after kill ${place + 1} is the next`, () =>
      nextNumberFollows(again.publicUrl, dataDir, waiting, answered),
    );
    assert.equal(await again.stop('SIGKILL'), null);
  }

  await t.test('every retry of a filing without a response files once', async (t2) => {
    const service = await serveWatched(t2, env);
    assert.deepEqual(await postAll(service.publicUrl, waiting, (answer) => answered.push(answer)), []);
    assert.equal(answered.length + lost.length, filings);
    await retriesFileOnce(service.publicUrl, dataDir, lost);
    await allAreThere(dataDir, service, issued.token, answered, answered.slice(-20));
  });
});

async function nextNumberFollows(
  publicUrl: string,
  dataDir: string,
  waiting: Prepared[],
  answered: Answered[],
): Promise<void> {
  const stored = storedFilings(dataDir).length;
  const next = waiting.shift();
  assert.ok(next);
  const agent = new Agent();
  const answer = await post(agent, publicUrl, next);
  agent.destroy();
  assert.equal(answer?.status, 200, answer?.text ?? 'no answer');
  assert.equal(answer.json.filingNo.slice(8), String(stored + 1).padStart(6, '0'));
  answered.push({ ...next, ...answer.json });
}

/** A retry has a new timestamp, nonce and signature; its Idempotency-Key says that it is the same filing. */
async function retriesFileOnce(publicUrl: string, dataDir: string, lost: readonly Prepared[]): Promise<void> {
  await each(lost, async ({ platform, body, idempotencyKey, author }) => {
    const before = storedFilings(dataDir).find((filing) => filing.author === author);
    const sent = { target, body, headers: { 'Idempotency-Key': idempotencyKey } };
    const answer = await send(publicUrl, platform, sent);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers['idempotent-replayed'], before === undefined ? undefined : 'true');
    if (before !== undefined) assert.equal(answer.json.filingNo, before.filingNo);
  });
  const stored = storedFilings(dataDir);
  assert.equal(stored.length, filings);
  assert.equal(new Set(stored.map(({ author }) => author)).size, filings);
}

/** Sends a filing of the sample artwork. */
async function file(publicUrl: string, platform: IssuedPlatform): Promise<RestAnswer> {
  const answer = await send(publicUrl, platform, { target, body: JSON.stringify(artwork) });
  assert.equal(answer.status, 200, answer.text);
  return answer;
}

const usageOf = async (internalUrl: string, token: string, caller: string): Promise<unknown> =>
  (await typedCall(internalUrl, token, 'AdminService/GetUsage', { caller })).json;

const nowS = (): number => Math.floor(Date.now() / 1000);

test('nonces, quota counts and numbers survive kill -9', { timeout: 300_000 }, async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms: issued, token } = await issueInto(dataDir, 1);
  const [platform] = issued as [IssuedPlatform];
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const first = await serveWatched(t, env);
  const filed = [await file(first.publicUrl, platform), await file(first.publicUrl, platform)];
  const repeated = { target, body: JSON.stringify(artwork), nonce: 'n-1', timestamp: String(nowS()) };
  filed.push(await send(first.publicUrl, platform, repeated));
  const invalid = { ...repeated, body: '{}', nonce: 'n-2' };
  assertRefused(await send(first.publicUrl, platform, invalid), 400, 'VALIDATION_FAILED');
  const usage = await usageOf(first.internalUrl, token, platform.caller);
  const calls = String(filed.length + 1);
  assert.deepEqual(usage, { ...(usage as object), caller: platform.caller, calls });
  assert.equal(await first.stop('SIGKILL'), null);

  const again = await serveWatched(t, env);
  assert.deepEqual(await usageOf(again.internalUrl, token, platform.caller), usage);
  for (const sent of [repeated, invalid])
    assertRefused(await send(again.publicUrl, platform, sent), 401, 'NONCE_REUSED');
  filed.push(await file(again.publicUrl, platform));
  assert.deepEqual(
    filed.map(({ json }) => json.filingNo),
    numbers(filed.length, yearOf(filed[0]?.json.filingNo)),
  );
});
