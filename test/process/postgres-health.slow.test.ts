import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type Scraped, scrape } from '../support/metrics.ts';
import { createDatabase, runSql, skipUnlessPostgres, startCluster } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched } from '../support/watched-command.ts';

const skip = skipUnlessPostgres();
/** The longest wait for something that has to happen. */
const timeoutMs = 20_000;

const reload = 'SELECT pg_reload_conf()';

test('a server is ready exactly while PostgreSQL stores what it is given', {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startCluster(t, { fsync: true });
  const url = await createDatabase(t, { cluster });
  const dataDir = join(temporaryFolder(t), 'data');
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_DATABASE_URL: url });
  const becomes = (status: number) =>
    eventually(`readiness responds ${status}`, timeoutMs, async () => {
      const response = await fetch(`${service.publicUrl}/readyz`);
      await response.bytes();
      return response.status === status;
    });
  const metricsWith = (isSo: (metrics: Scraped) => boolean) =>
    eventually(`${isSo}`, timeoutMs, async () => {
      const metrics = await scrape(service.metricsUrl);
      return isSo(metrics) && metrics;
    });
  const failsWith = async (why: RegExp) => {
    await becomes(503);
    await eventually(`the log says ${why}`, timeoutMs, () =>
      why.test(service.logLines('not ready').at(-1) ?? ''),
    );
  };
  await becomes(200);
  const known = await metricsWith(({ value }) => value('artseal_postgres_oldest_snapshot_seconds') === 0);
  assert.ok((known.value('artseal_store_database_bytes') ?? 0) > 1_000_000);
  assert.equal(known.value('artseal_postgres_connected'), 1);

  await runSql(url, 'ALTER SYSTEM SET default_transaction_read_only = on', reload);
  await failsWith(/in a read-only transaction/);
  await runSql(
    url,
    'SET default_transaction_read_only = off',
    'ALTER SYSTEM RESET default_transaction_read_only',
    reload,
  );
  await becomes(200);

  const [session] = await runSql<{ pid: number }>(
    url,
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'artseal'",
  );
  assert.ok(session);
  process.kill(session.pid, 'SIGSTOP');
  await failsWith(/a write takes longer than 1 s/);
  await metricsWith(
    ({ value }) => value('artseal_store_up') === 0 && value('artseal_postgres_connected') === 1,
  );
  process.kill(session.pid, 'SIGCONT');
  await becomes(200);

  await cluster.kill();
  await becomes(503);
  const down = await eventually(
    'the fault is logged',
    timeoutMs,
    () => service.logged('"msg":"the database cannot be used')[0],
  );
  assert.match(down.fault, /connection to the database was lost|cannot connect to the database/);
  await metricsWith(({ value }) => value('artseal_postgres_connected') === 0);
  await cluster.start();
  await becomes(200);
  await metricsWith(({ value }) => value('artseal_postgres_reconnects_total') === 1);
  assert.equal(service.logged('"msg":"the database can be used again').length, 1);

  assert.equal(await service.stop(), 0, service.stderr());
});
