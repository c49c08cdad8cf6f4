import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Party_Role } from '../../gen/artseal/v1/admin_pb.ts';
import { readSandboxCredentials } from '../../src/config/sandbox-credentials.ts';
import { systemClock } from '../../src/operations/registry.ts';
import {
  askProvenance,
  fileArtwork,
  getEscrow,
  getEvidence,
  openEscrow,
  refundEscrow,
  releaseEscrow,
} from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { sharedDeployment } from '../support/instances.ts';
import { keysInFile, newKey } from '../support/master-keys.ts';
import { runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { type ServiceOptions, startService } from '../support/service.ts';
import { type RestAnswer, send } from '../support/signed-request.ts';
import { cards, type StripeStandIn } from '../support/stripe-stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';

const skip = skipUnlessPostgres();
const limitMs = 60_000;
const kills = 3;

/** A deployment, and what starts an instance of it in this process. */
async function deployed(t: TestContext) {
  const deployment = await sharedDeployment(t);
  const start = ({ env, ...options }: ServiceOptions = {}) =>
    startService(t, { env: { ...deployment.settings, ...env }, ...options });
  return { ...deployment, start };
}

test('two instances serve one database, and each shows both', { skip }, async (t) => {
  const { start } = await deployed(t);
  const one = await start();
  const two = await start();
  const platform = await one.platform();
  await eventually('the key at the other', limitMs, async () => {
    return (await fileArtwork(two, platform)).status === 200;
  });
  const { maintenance } = await two.operator();
  const { instances } = await maintenance.listInstances({});
  assert.deepEqual(
    instances.map(({ isThis, isGone, processId }) => [isThis, isGone, processId]),
    [
      [false, false, process.pid],
      [true, false, process.pid],
    ],
  );
  // Not always the first: a busy machine can cost it its session.
  await eventually('one of them leads', limitMs, async () => {
    const { instances: shown } = await maintenance.listInstances({});
    return shown.filter(({ isLeading }) => isLeading).length === 1;
  });
  const numbers = await Promise.all(
    Array.from(
      { length: 40 },
      async (_, nth) => (await fileArtwork(nth % 2 ? one : two, platform)).json.filingNo,
    ),
  );
  assert.equal(new Set(numbers).size, 40);
  for (const service of [one, two])
    assert.equal((await askProvenance(service, platform, numbers[0])).status, 200);
});

test('a revoked key is refused at the other instance, and a waiting caller there gets an event', {
  skip,
}, async (t) => {
  const { start } = await deployed(t);
  const [one, two] = [await start(), await start()];
  const platform = await one.platform();
  const other = await one.platform();
  await eventually('the keys at the other', limitMs, () => two.store.findKey(other.apiKey) !== undefined);
  const waiting = send(two.publicUrl, platform, { method: 'GET', target: '/api/v1/events?waitSeconds=30' });
  await eventually('the call waits', limitMs, () => two.store.requestsInFlight() === 0);
  await fileArtwork(one, platform);
  const { status, json } = await waiting;
  assert.deepEqual(
    [status, json.events.map(({ type }: { type: string }) => type)],
    [200, ['filing.created']],
  );
  const { admin } = await one.operator();
  await admin.revokeKey({ keyId: other.keyId });
  await eventually('the key is refused', limitMs, async () => {
    return (await fileArtwork(two, other)).json.code === 'SIGNATURE_INVALID';
  });
});

test('an instance that cannot work beside the others is refused', { skip }, async (t) => {
  const { start, key } = await deployed(t);
  const others = keysInFile(t);
  const added = newKey('k2');
  await start();
  others.write(added, key);
  const refused = (env: Record<string, string>, message: RegExp) => assert.rejects(start({ env }), message);
  await refused({ ARTSEAL_PAYMENT_PROVIDER: 'simulated' }, /ARTSEAL_PAYMENT_PROVIDER must be stripe/);
  await refused({ ARTSEAL_TLOG_ORIGIN: 'log.example/other' }, /ARTSEAL_TLOG_ORIGIN must be unset/);
  await refused({ ARTSEAL_TIME_ZONE: 'Asia/Shanghai' }, /ARTSEAL_TIME_ZONE must be UTC/);
  await refused(others.env, /the master key k2/);
  others.write(key, added);
  await start({ env: others.env });
});

test('two instances whose clocks are 3 s apart refuse no filing, and date them in the order of their numbers', {
  skip,
}, async (t) => {
  const { start } = await deployed(t);
  const late = { ...systemClock, nowMs: () => systemClock.nowMs() - 3_000 };
  const both = [await start(), await start({ clock: late })] as const;
  const platform = await both[0].platform();
  await eventually(
    'the key at the other',
    limitMs,
    () => both[1].store.findKey(platform.apiKey) !== undefined,
  );
  const filed: RestAnswer[] = [];
  for (let nth = 0; nth < 20; nth += 1) filed.push(await fileArtwork(both[nth % 2 ? 1 : 0], platform));
  assert.deepEqual([...new Set(filed.map(({ status }) => status))], [200]);
  const times = filed.map(({ json }) => json.timestamp);
  assert.deepEqual(times, times.toSorted());
  for (const [nth, { json }] of filed.entries())
    assert.equal((await askProvenance(both[nth % 2 ? 0 : 1], platform, json.filingNo)).status, 200);
});

test('a call with one Idempotency-Key at both instances has one effect, although one of them is killed', {
  skip,
  timeout: 600_000,
}, async (t) => {
  const { settings, url } = await deployed(t);
  const serve = (dataDir: string) => serveWatched(t, { ...settings, ARTSEAL_DATA_DIR: dataDir });
  const folder = join(temporaryFolder(t), 'data');
  const survivor = await serve(folder);
  const platform = readSandboxCredentials(folder) ?? assert.fail();
  const answers = new Map<string, string>();
  const call = async (service: WatchedService, key: string) => {
    const answer = await fileArtwork(service, platform, { headers: { 'idempotency-key': key } }).catch(
      () => undefined,
    );
    if (answer?.status !== 200) return false;
    assert.equal(answers.get(key) ?? answer.json.filingNo, answer.json.filingNo, key);
    answers.set(key, answer.json.filingNo);
    return true;
  };
  for (let killed = 0; killed < kills; killed += 1) {
    const victim = await serve(join(temporaryFolder(t), 'data'));
    const keys = Array.from({ length: 100 }, (_, nth) => `${killed}-${nth}`);
    const calls = keys.flatMap((key) => [call(victim, key), call(survivor, key)]);
    await eventually('some answers', limitMs, () => answers.size > killed * 100 + 5);
    victim.child.kill('SIGKILL');
    await Promise.all(calls);
    for (const key of keys) await eventually(`the answer to ${key}`, limitMs, () => call(survivor, key));
  }
  const [row] = await runSql<{ n: string }>(url, 'SELECT count(*) AS n FROM filing');
  assert.deepEqual([Number(row?.n), new Set(answers.values()).size], [kills * 100, kills * 100]);
});

test('if the instance that signs is killed, the other one signs, and no checkpoint is smaller than one before', {
  skip,
  timeout: 600_000,
}, async (t) => {
  const { start, settings } = await deployed(t);
  const leader = await serveWatched(t, { ...settings, ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data') });
  const other = await start();
  const platform = await other.platform();
  const sizes: number[] = [];
  const evidence = async () => {
    const { json } = await fileArtwork(other, platform);
    assert.equal((await getEvidence(other, platform, json.filingNo)).status, 200);
    const note = await (await fetch(`${other.publicUrl}/log/checkpoint`)).text();
    sizes.push(Number(note.split('\n')[1]));
  };
  await evidence();
  assert.equal(other.store.instances?.isLeading(), false);
  leader.child.kill('SIGKILL');
  const killedMs = performance.now();
  await evidence();
  t.diagnostic(`a checkpoint ${Math.round(performance.now() - killedMs)} ms after the kill`);
  assert.equal(other.store.instances?.isLeading(), true);
  assert.deepEqual(
    sizes,
    sizes.toSorted((one, next) => one - next),
  );
});

test('60 orders that are released at one instance and refunded at the other have one outcome each', {
  skip,
  timeout: 600_000,
}, async (t) => {
  const { start, standIn } = await deployed(t);
  const both = [await start(), await start()] as const;
  const platform = await both[0].platform();
  const { admin } = await both[0].operator();
  const of = { caller: platform.caller };
  const buyer = { customer: 'cus_1', paymentMethod: cards.good };
  await admin.addParty({ ...of, role: Party_Role.BUYER, partyId: 'buyer-1', providerIds: buyer });
  await admin.addParty({
    ...of,
    role: Party_Role.SELLER,
    partyId: 'seller-1',
    providerIds: { account: 'acct_1' },
  });
  await eventually(
    'the key at the other',
    limitMs,
    () => both[1].store.findKey(platform.apiKey) !== undefined,
  );
  const open = async (nth: number) => {
    const service = both[nth % 2 ? 1 : 0];
    const { filingNo } = (await fileArtwork(service, platform)).json;
    const { status, text, json } = await openEscrow(service, platform, filingNo, { amount: 1_280_000 });
    assert.equal(status, 200, text);
    return json.escrowId as string;
  };
  const orders = await Promise.all(Array.from({ length: 60 }, (_, nth) => open(nth)));
  await Promise.all(
    orders.flatMap((escrowId) => [
      releaseEscrow(both[0], platform, escrowId),
      refundEscrow(both[1], platform, escrowId),
    ]),
  );
  for (const escrowId of orders) {
    const { state } = await eventually(`the outcome of ${escrowId}`, limitMs, async () => {
      const { json } = await getEscrow(both[1], platform, escrowId);
      return json.state !== 'FROZEN' && json;
    });
    const paths = standIn.requests
      .filter(({ method, path }) => method === 'POST' && /\/(capture|cancel)$/.test(path))
      .filter(({ path }) => path.includes(`/${intentOf(standIn, escrowId)}/`))
      .map(({ path }) => path.split('/').at(-1));
    assert.deepEqual(paths, [state === 'RELEASED' ? 'capture' : 'cancel'], escrowId);
  }
});

const intentOf = ({ intents }: StripeStandIn, escrowId: string): string =>
  intents.find(({ metadata }) => metadata.artseal_escrow === escrowId)?.id ?? assert.fail(escrowId);
