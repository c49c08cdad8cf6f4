import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { scrape } from '../support/metrics.ts';
import {
  type DatabaseMachine,
  type PatroniCluster,
  skipUnlessPatroni,
  startPatroni,
} from '../support/patroni.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/watched-command.ts';
import { fileWithRetries } from './retried-filings.ts';
import { supervise } from './supervised-services.ts';

const skip = skipUnlessPatroni();
const failovers = Number(process.env.ARTSEAL_TEST_FAILOVERS ?? 3);
/** The longest wait for something that has to happen, in milliseconds. */
const stepMs = 120_000;
/** How long a fail-over may take, in milliseconds. It takes 15 to 25 s, and longer on a machine with other work. */
const failoverMs = 60_000;
/** The number of platforms, each of which may send 200 calls a second. */
const platforms = 4;

/** A service on a new cluster, and the load on it. */
async function serveOnCluster(t: TestContext) {
  const cluster = await startPatroni(t);
  const { primary } = await cluster.whole();
  const password = randomBytes(16).toString('hex');
  await cluster.sql(primary, 'postgres', `CREATE ROLE artseal LOGIN PASSWORD '${password}'`);
  await cluster.sql(
    primary,
    'postgres',
    "CREATE DATABASE artseal OWNER artseal ENCODING 'UTF8' TEMPLATE template0",
  );
  const dataDir = temporaryFolder(t);
  const passwordFile = join(dataDir, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const settings = { ...cluster.settings, ARTSEAL_DATABASE_PASSWORD_FILE: passwordFile };
  const issued = await issueInto(dataDir, platforms, settings);
  const env = { ...settings, ARTSEAL_DATA_DIR: dataDir };
  const services = [await supervise(t, env)];
  const load = fileWithRetries(services, issued.platforms, t.signal);
  const { tally } = load;
  /** Waits for the answer to a call that is sent from now on. Returns how long that took, in milliseconds. */
  const served = async (limitMs = stepMs): Promise<number> => {
    const fromMs = performance.now();
    await eventually('a call is answered', limitMs, () => tally.newestSentMs > fromMs);
    return performance.now() - fromMs;
  };
  return { cluster, services, env, load, tally, served };
}

type OnCluster = Awaited<ReturnType<typeof serveOnCluster>>;

const storedIn = (cluster: PatroniCluster, name: DatabaseMachine) =>
  cluster.sql(name, 'artseal', 'SELECT filing_no FROM filing ORDER BY id');

/** Ends the load. Asserts that each filing is stored once, without a gap of numbers, and as the published log says. */
async function assertComplete({ cluster, services, env, load, tally }: OnCluster): Promise<void> {
  await load.stop();
  const { primary } = await cluster.whole();
  const stored = await storedIn(cluster, primary);
  const numbers = new Set(stored);
  const answered = [...tally.answered.values()];
  assert.deepEqual(
    answered.filter((number) => !numbers.has(number)),
    [],
  );
  if (tally.rejected.length === 0) assert.equal(stored.length, answered.length);
  const year = stored[0]?.split('-')[1];
  assert.deepEqual(
    stored,
    stored.map((_, nth) => `AS-${year}-${String(nth + 1).padStart(6, '0')}`),
  );
  const [service] = services;
  const key = await runCommand(['evidence', 'vkey'], env);
  const url = `${service?.running()?.publicUrl}/log`;
  const audit = await runCommand(['log', 'audit', url, '--key', key.stdout.trim()], {});
  assert.deepEqual([audit.code, audit.stderr], [0, '']);
  const check = await runCommand(['check'], env);
  assert.equal(check.code, 0, check.stdout);
  for (const { stop, log } of services) assert.equal(await stop(), 0, log());
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

const figuresOf = ({ tally, services }: OnCluster): string =>
  `${tally.calls} calls: ${tally.answered.size} answered, ${tally.unavailable} unavailable, ${tally.unknown} unknown; ${services.map(
    ({ starts }) => starts(),
  )} starts`;

test(`nothing answered is lost when the primary is killed ${failovers} times`, {
  skip,
  timeout: (failovers + 2) * 2 * stepMs,
}, async (t) => {
  const on = await serveOnCluster(t);
  const { cluster, tally, served } = on;
  const outagesMs: number[] = [];
  for (let nth = 0; nth < failovers; nth += 1) {
    await served();
    const { primary, standby } = await cluster.whole();
    const fromMs = performance.now();
    await cluster.kill(primary);
    await served(failoverMs);
    outagesMs.push(performance.now() - fromMs);
    cluster.start(primary);
    const next = await cluster.whole();
    assert.deepEqual(next, { primary: standby, standby: primary });
  }
  await served();
  t.diagnostic(`served again after ${outagesMs.map(seconds).join(', ')} s; ${figuresOf(on)}`);
  await assertComplete(on);
  assert.ok(tally.unknown <= tally.calls / 100);
});

test('a switchover loses no call', { skip, timeout: 5 * stepMs }, async (t) => {
  const on = await serveOnCluster(t);
  const { cluster, services, tally, served } = on;
  await served();
  const { primary, standby } = await cluster.whole();
  const fromMs = performance.now();
  await cluster.control('switchover', '--primary', primary, '--candidate', standby, '--force');
  assert.deepEqual(await cluster.whole(), { primary: standby, standby: primary });
  await served();
  t.diagnostic(`${figuresOf(on)}; ${seconds(performance.now() - fromMs)} s until the standby follows`);
  await assertComplete(on);
  assert.equal(tally.unknown, 0);
  assert.deepEqual(
    services.map(({ starts }) => starts()),
    [1],
  );
});

test('after both machines were down, the one that answered last is the primary', {
  skip,
  timeout: 5 * stepMs,
}, async (t) => {
  const on = await serveOnCluster(t);
  const { cluster, served } = on;
  const { primary, standby } = await cluster.whole();
  await cluster.kill(standby);
  await served();
  await cluster.kill(primary);
  cluster.start(standby);
  await eventually('the other one does not lead', stepMs, () =>
    cluster.log(standby).includes('i am not the healthiest node'),
  );
  cluster.start(primary);
  assert.deepEqual(await cluster.whole(), { primary, standby });
  await served();
  await assertComplete(on);
});

test('without the standby, filings are answered, and in strict mode they wait', {
  skip,
  timeout: 5 * stepMs,
}, async (t) => {
  const on = await serveOnCluster(t);
  const { cluster, tally, served } = on;
  const { primary, standby } = await cluster.whole();
  await cluster.kill(standby);
  await served();
  cluster.start(standby);
  await cluster.whole();

  await cluster.control('edit-config', '--set', 'synchronous_mode_strict=true', '--force');
  await cluster.kill(standby);
  /** Waits until a session of the server waits for a standby. Returns its process id. */
  const waitingSession = (before = '') =>
    eventually('a commit waits for any standby', stepMs, async () => {
      const sessions = await cluster.sql(
        primary,
        'postgres',
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'artseal' AND wait_event = 'SyncRep'
          AND current_setting('synchronous_standby_names') = '*'`,
      );
      return sessions.find((session) => session !== before);
    });
  const session = await waitingSession();
  const { size } = tally.answered;
  // This ends the wait, so that what waited can be read, although it is on one machine alone.
  await cluster.sql(primary, 'postgres', `SELECT pg_terminate_backend(${session})`);
  await waitingSession(session);
  assert.equal(tally.answered.size, size);
  cluster.start(standby);
  await cluster.whole();
  await served();
  await assertComplete(on);
});

test('in asynchronous mode a fail-over loses answered filings, and the server says so', {
  skip,
  timeout: 5 * stepMs,
}, async (t) => {
  const on = await serveOnCluster(t);
  const { cluster, services, load, tally, served } = on;
  await cluster.control('edit-config', '--set', 'synchronous_mode=false', '--force');
  const { primary, standby } = await cluster.whole('replica');
  await served();
  const [receiver] = await cluster.sql(standby, 'postgres', 'SELECT pid FROM pg_stat_wal_receiver');
  process.kill(Number(receiver), 'SIGSTOP');
  const [service = assert.fail()] = services;
  const metric = async (name: string) =>
    (await scrape(service.running()?.metricsUrl ?? '')).value(name) ?? assert.fail();
  const { size } = tally.answered;
  const leaves = await metric('artseal_evidence_log_leaves');
  await eventually('filings are answered and published', stepMs, async () => {
    const published = await metric('artseal_evidence_log_published_leaves');
    return published > leaves && tally.answered.size > size + 50;
  });
  await cluster.kill(primary);
  // With it ends what it has received and not read.
  process.kill(Number(receiver), 'SIGKILL');

  await eventually('calls are rejected', stepMs, () => tally.rejected.length > 0);
  await load.stop();
  for (const answer of tally.rejected) assert.match(answer, /RECORD_DAMAGED/);
  const stored = new Set(await storedIn(cluster, standby));
  const lost = [...tally.answered.values()].filter((number) => !stored.has(number));
  t.diagnostic(`${lost.length} of ${tally.answered.size} answered filings are lost`);
  assert.ok(lost.length > 0);
  assert.match(service.log(), /it had \d+ leaves, and the database has \d+/);
  service.running()?.child.kill('SIGKILL');
  await eventually('a further start fails', stepMs, () => service.failures().length > 0);
  assert.match(service.failures().join(), /the database is older than what was published/);

  // The database of the former primary is put back.
  await cluster.kill(standby);
  await cluster.forget(standby);
  cluster.start(primary);
  await eventually('the server starts', stepMs, () => service.running());
  // Both may have begun a timeline of the same number, so that its own data cannot be continued.
  cluster.erase(standby);
  cluster.start(standby);
  await cluster.whole('replica');
  await cluster.control('edit-config', '--set', 'synchronous_mode=true', '--force');
  assert.deepEqual(await cluster.whole(), { primary, standby });
  await assertComplete(on);
});
