import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { eventually } from '../support/eventually.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { scrape } from '../support/metrics.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';
import { startWitness } from '../support/witness-stand-in.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
const origin = 'log.example/artseal';

/**
 * A registry of two filings that a witness cosigned, and the whole data folder as it was after the first. `dataDir` has the older
 * one, `newest` the other.
 */
async function setBack(t: TestContext, settings: Record<string, string> = {}) {
  const folder = temporaryFolder(t);
  const [dataDir, newest] = [join(folder, 'data'), join(folder, 'newest')];
  const { platforms } = await issueInto(dataDir, 1);
  const [platform] = platforms as [IssuedPlatform];
  const witness = await startWitness(t, 'one.example/w');
  const witnessesFile = join(folder, 'witnesses');
  writeFileSync(witnessesFile, `${witness.vkey} ${witness.url}\n`);
  const env = {
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_TLOG_ORIGIN: origin,
    ARTSEAL_TLOG_WITNESSES_FILE: witnessesFile,
    ...settings,
  };
  const file = ({ publicUrl }: WatchedService, key?: string) => {
    const headers = key === undefined ? {} : { 'Idempotency-Key': key };
    return send(publicUrl, platform, { target: '/api/v1/filing', body: JSON.stringify(artwork), headers });
  };
  const giveKey = async () => {
    const { printed } = await runHere(['evidence', 'vkey'], { ARTSEAL_DATA_DIR: dataDir });
    witness.logs.add(printed[0] ?? assert.fail());
  };
  const serve = () => serveWatched(t, env);
  const stop = async (service: WatchedService) => assert.equal(await service.stop(), 0, service.stderr());
  /** Files once, stops when the witness has cosigned that, and gives the number. */
  const fileOnce = async (key?: string): Promise<string> => {
    const service = await serve();
    const before = witness.cosigned.get(origin)?.size ?? 0;
    const { status, json } = await file(service, key);
    assert.equal(status, 200);
    await eventually('a cosignature', timeoutMs, () => (witness.cosigned.get(origin)?.size ?? 0) > before);
    await stop(service);
    return json.filingNo;
  };

  await stop(await serve());
  await giveKey();
  const first = await fileOnce('the-first');
  const copy = join(folder, 'copy');
  copyFolder(dataDir, copy);
  const second = await fileOnce();
  renameSync(dataDir, newest);
  renameSync(copy, dataDir);
  return { dataDir, newest, witness, platform, numbers: [first, second], file, giveKey, serve, stop };
}

const readiness = async ({ publicUrl }: WatchedService) => {
  const answer = await fetch(`${publicUrl}/readyz`);
  return [answer.status, await answer.text()] as const;
};

const metric = async ({ metricsUrl }: WatchedService, name: string) =>
  (await scrape(metricsUrl)).value(`artseal_evidence_log_${name}`);

test('a registry that was set back files nothing from its first moment on, until the witness cosigns again', {
  timeout: 300_000,
}, async (t) => {
  const setting = await setBack(t, { ARTSEAL_TLOG_WITNESSES_REQUIRED: '1' });
  const { dataDir, newest, witness, platform, numbers, file, serve, stop } = setting;
  const [first, second] = numbers;
  const older = await serve();
  const leaves = await metric(older, 'leaves');
  const refused = await file(older);
  assert.deepEqual([refused.status, refused.json.code], [503, 'UNAVAILABLE']);
  assert.match(refused.json.message, /^Nothing can be filed now: a witness .* Nothing was stored, /);
  assert.equal(refused.headers['retry-after'], '60');
  const [status, said] = await readiness(older);
  assert.equal(status, 503);
  assert.match(said, /Not ready: witnesses\./);
  assert.equal(await metric(older, 'rolled_back'), 1);
  // Lines of the log are written some at a time.
  await eventually('the log', timeoutMs, () => older.stderr().includes('not ready: witnesses'));
  const logged = older.stdout() + older.stderr();
  assert.match(
    logged,
    /"level":50.*one\.example\/w.*has cosigned \d+ leaves, and the log has only \d+.*rolled back/,
  );
  assert.match(logged, /not ready: witnesses/);

  // What was answered before is answered again, and what only reads goes on.
  const repeated = await file(older, 'the-first');
  assert.deepEqual([repeated.status, repeated.json.filingNo], [200, first]);
  const asked = await send(older.publicUrl, platform, { target: `/api/v1/provenance/${first}` });
  assert.equal(asked.status, 200);
  assert.equal(await metric(older, 'leaves'), leaves);
  await stop(older);

  rmSync(dataDir, { recursive: true });
  renameSync(newest, dataDir);
  const back = await serve();
  assert.deepEqual(await readiness(back), [200, '{"status":"ok"}']);
  assert.equal(await metric(back, 'rolled_back'), 0);
  assert.equal((await file(back)).json.filingNo, `${second?.slice(0, -1)}3`);
  // A witness that is wrong stops filing, and does so no longer than it is wrong.
  await eventually('a cosignature', timeoutMs, async () => (await metric(back, 'published_leaves')) === 5);
  const cosigned = witness.cosigned.get(origin) ?? assert.fail();
  witness.cosigned.set(origin, { ...cosigned, size: 1_000 });
  assert.equal((await file(back)).status, 200);
  await eventually('a apiError', timeoutMs, async () => (await file(back)).status === 503);
  witness.cosigned.set(origin, cosigned);
  await eventually('a filing', timeoutMs, async () => (await file(back)).status === 200);
  assert.deepEqual(await readiness(back), [200, '{"status":"ok"}']);
});

test('a registry that was set back files again once it is forked, and the witness is given the new key', {
  timeout: 300_000,
}, async (t) => {
  const setting = await setBack(t, { ARTSEAL_TLOG_WITNESSES_REQUIRED: '1' });
  const { dataDir, witness, file, giveKey, serve, stop } = setting;
  const older = await serve();
  assert.equal((await file(older)).status, 503);
  await stop(older);
  // The file is as old as the database: without it the database cannot be taken for the newest one.
  rmSync(join(dataDir, 'log-checkpoint'));
  const settings = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_TLOG_ORIGIN: origin };
  assert.equal((await runHere(['evidence', 'fork'], settings)).code, 3);
  assert.equal((await runHere(['evidence', 'fork', '--accept'], settings)).code, 0);
  await giveKey();
  const forked = await serve();
  assert.deepEqual(await readiness(forked), [200, '{"status":"ok"}']);
  assert.equal((await file(forked)).status, 200);
  await eventually('a cosignature', timeoutMs, () => witness.cosigned.has(`${origin}/2`));
});

test('where no witness is required, and where it is set so, one that finds the log rolled back stops nothing', {
  timeout: 300_000,
}, async (t) => {
  const required = { ARTSEAL_TLOG_WITNESSES_REQUIRED: '1', ARTSEAL_TLOG_REFUSE_ROLLED_BACK: 'no' };
  for (const settings of [{}, required]) {
    const { file, serve } = await setBack(t, settings);
    const older = await serve();
    await eventually('what it says', timeoutMs, async () => (await metric(older, 'rolled_back')) === 1);
    assert.equal((await file(older)).status, 200);
    assert.deepEqual(await readiness(older), [200, '{"status":"ok"}']);
  }
});
