import assert from 'node:assert/strict';
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runHere } from '../../support/artseal.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { eventually } from '../../support/eventually.ts';
import { scrape } from '../../support/metrics.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startWitness } from '../../support/witness-stand-in.ts';

const timeoutMs = 60_000;
const origin = 'log.example/artseal';
const required = { ARTSEAL_TLOG_WITNESSES_REQUIRED: '1' };

/** A witness, and services that ask it; they share a clock near that of the witness. */
async function openWitnessed(t: TestContext, settings: Record<string, string>) {
  const folder = temporaryFolder(t);
  const witness = await startWitness(t, 'one.example/w');
  const witnessesFile = join(folder, 'witnesses');
  writeFileSync(witnessesFile, `${witness.vkey} ${witness.url}\n`);
  const clock = createManualClock(Date.now());
  const env = {
    ARTSEAL_TLOG_ORIGIN: origin,
    ARTSEAL_TLOG_WITNESSES_FILE: witnessesFile,
    ARTSEAL_METRICS_ADDR: '127.0.0.1:0',
    ...settings,
  };
  const serve = (dataDir: string) => startService(t, { dataDir, env, clock });
  const giveKey = ({ publication }: TestService) => witness.logs.add(publication.verifierKeys()[0] ?? '');
  /** Advances the clock until a condition holds. */
  const until = <T>(what: string, isSo: () => T | false | Promise<T | false>) =>
    eventually(what, timeoutMs, () => {
      clock.advance(1_000);
      clock.setWall(Date.now());
      return isSo();
    });
  const cosigned = (service: TestService) =>
    until('the whole log is cosigned and published', async () => {
      const { size } = await service.execute({ kind: 'GetTree' });
      return witness.cosigned.get(origin)?.size === size && service.publication.current()?.size === size;
    });
  return { folder, witness, serve, giveKey, until, cosigned };
}

/**
 * A registry of two filings that a witness cosigned: the data folder with both, and a copy from before the second. The first
 * filing has the idempotency key `first`.
 */
async function setBack(t: TestContext, settings: Record<string, string> = {}) {
  const opened = await openWitnessed(t, settings);
  const { folder, serve, giveKey, cosigned } = opened;
  const [newest, older] = [join(folder, 'newest'), join(folder, 'older')];
  const first = await serve(newest);
  const platform = await first.platform();
  giveKey(first);
  const file = (service: TestService, key?: string) =>
    fileArtwork(service, platform, key === undefined ? {} : { headers: { 'Idempotency-Key': key } });
  const { filingNo } = (await file(first, 'first')).json;
  await cosigned(first);
  await first.close();
  copyFolder(newest, older);
  const second = await serve(newest);
  assert.equal((await file(second)).status, 200);
  await cosigned(second);
  await second.close();
  return { ...opened, newest, older, platform, filingNo, file };
}

async function readiness({ publicUrl }: TestService): Promise<readonly [status: number, text: string]> {
  const response = await fetch(`${publicUrl}/readyz`);
  return [response.status, await response.text()];
}

const rolledBack = async ({ metricsAddress }: TestService) =>
  (await scrape(`http://${metricsAddress}/metrics`)).value('artseal_evidence_log_rolled_back');

test('a registry that was set back rejects filings from its first moment, until the witness cosigns again', async (t) => {
  const { newest, older, platform, filingNo, file, serve, witness, until, cosigned } = await setBack(
    t,
    required,
  );
  const outdated = await serve(older);
  const { size } = await outdated.execute({ kind: 'GetTree' });
  const rejected = await file(outdated);
  assertRejected(
    rejected,
    503,
    'UNAVAILABLE',
    /^Nothing can be filed now: the published evidence log .* Nothing was stored, /,
  );
  assert.equal(rejected.headers['retry-after'], '60');
  const [status, text] = await readiness(outdated);
  assert.equal(status, 503);
  assert.match(text, /Not ready: witnesses\./);
  assert.equal(await rolledBack(outdated), 1);
  assert.match(
    outdated.logLines.join(''),
    /"level":50.*one\.example\/w.*has cosigned \d+ leaves, and the log has only \d+.*rolled back/,
  );
  // Replays and reads still work.
  assert.equal((await file(outdated, 'first')).json.filingNo, filingNo);
  const read = await send(outdated.publicUrl, platform, { target: `/api/v1/provenance/${filingNo}` });
  assert.equal(read.status, 200);
  assert.equal((await outdated.execute({ kind: 'GetTree' })).size, size);
  await outdated.close();

  const back = await serve(newest);
  assert.deepEqual(await readiness(back), [200, '{"status":"ok"}']);
  assert.equal(await rolledBack(back), 0);
  assert.equal((await file(back)).json.filingNo, `${filingNo.slice(0, -1)}3`);
  await cosigned(back);
  // A wrong witness stops filings only as long as it is wrong.
  const right = witness.cosigned.get(origin) ?? assert.fail();
  witness.cosigned.set(origin, { ...right, size: 1_000 });
  assert.equal((await file(back)).status, 200);
  await until('a rejection', async () => (await file(back)).status === 503);
  witness.cosigned.set(origin, right);
  await until('a filing', async () => (await file(back)).status === 200);
  assert.deepEqual(await readiness(back), [200, '{"status":"ok"}']);
});

test('a registry that was set back files again once its log is forked and the witness knows the new key', async (t) => {
  const { older, file, serve, giveKey, witness, until } = await setBack(t, required);
  // Without this file, which is as old as the database, the database may be an old one.
  rmSync(join(older, 'log-checkpoint'));
  const settings = { ARTSEAL_DATA_DIR: older, ARTSEAL_TLOG_ORIGIN: origin };
  assert.equal((await runHere(['evidence', 'fork'], settings)).code, 3);
  assert.equal((await runHere(['evidence', 'fork', '--accept'], settings)).code, 0);
  const forked = await serve(older);
  giveKey(forked);
  await until('a filing', async () => (await file(forked)).status === 200);
  await until('a cosignature', () => witness.cosigned.has(`${origin}/2`));
  assert.deepEqual(await readiness(forked), [200, '{"status":"ok"}']);
});

for (const [what, settings] of [
  ['no witness is required', {}],
  ['the settings say so', { ...required, ARTSEAL_TLOG_REFUSE_ROLLED_BACK: 'no' }],
] as const)
  test(`a registry that was set back still files if ${what}`, async (t) => {
    const { older, file, serve, until } = await setBack(t, settings);
    const outdated = await serve(older);
    await until('the witness reports it', async () => (await rolledBack(outdated)) === 1);
    assert.equal((await file(outdated)).status, 200);
    assert.deepEqual(await readiness(outdated), [200, '{"status":"ok"}']);
  });

test('a registry that finds a newer published checkpoint than its database has files nothing', async (t) => {
  const { newest, older, file, serve, until, cosigned } = await setBack(t);
  const ahead = await serve(newest);
  for (const _ of ['one', 'two', 'three']) assert.equal((await file(ahead)).status, 200);
  await cosigned(ahead);
  await ahead.close();
  const outdated = await serve(older);
  copyFileSync(join(newest, 'log-checkpoint'), join(older, 'log-checkpoint'));
  assert.equal((await file(outdated)).status, 200);
  const rejected = await until('a rejection', async () => {
    const answer = await file(outdated);
    return answer.status === 503 && answer;
  });
  assertRejected(rejected, 503, 'UNAVAILABLE', /^Nothing can be filed now: the published evidence log /);
  const [status, text] = await readiness(outdated);
  assert.equal(status, 503);
  assert.match(text, /Not ready: evidence\./);
});

test('a filing that is rejected because the log was rolled back is not counted, and can be repeated under its key', async (t) => {
  const { folder, witness, serve, giveKey, until } = await openWitnessed(t, required);
  witness.lie = 'CONFLICT_BEYOND';
  const service = await serve(join(folder, 'data'));
  const platform = await service.platform('TRIAL');
  const file = () => fileArtwork(service, platform, { headers: { 'Idempotency-Key': 'one' } });
  for (const _ of ['first', 'again']) {
    const rejected = await file();
    assertRejected(rejected, 503, 'UNAVAILABLE', /evidence log/, /Nothing was stored/);
    assert.match(String(rejected.headers.ratelimit), /"monthly";r=1000;/);
  }
  giveKey(service);
  witness.lie = undefined;
  const filed = await until('a filing', async () => {
    const answer = await file();
    return answer.status === 200 && answer;
  });
  assert.match(String(filed.headers.ratelimit), /"monthly";r=999;/);
});
