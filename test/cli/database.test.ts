import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { utcTimestamp } from '../../src/domain/utc.ts';
import { artsealWith, runHere } from '../support/artseal.ts';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { createManualClock, type ManualClock } from '../support/clock.ts';
import { createDatabase, postgresCluster, runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { assertRejected } from '../support/rejected.ts';
import { startService, type TestService } from '../support/service.ts';
import { newNonce } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessPostgres();

/** A sandbox on PostgreSQL, and a backup of its database. */
async function sandboxWithBackup(t: TestContext, clock: ManualClock) {
  const url = await createDatabase(t);
  const name = new URL(url.replace('@', '@localhost')).pathname.slice(1);
  const backup = `${name}_backup`;
  const admin = (await postgresCluster()).url('postgres');
  t.after(() => runSql(admin, `DROP DATABASE IF EXISTS ${backup}`));
  const dataDir = temporaryFolder(t);
  const env = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_DATABASE_URL: url };
  return {
    ...{ url, env, artseal: artsealWith(env) },
    start: () => startService(t, { clock, dataDir, env }),
    takeBackup: () => runSql(admin, `CREATE DATABASE ${backup} TEMPLATE ${name}`),
    putBack: () => runSql(admin, `DROP DATABASE ${name}`, `CREATE DATABASE ${name} TEMPLATE ${backup}`),
  };
}

/** All events in the order of their positions. */
const eventsOf = (url: string) =>
  runSql<{ readonly sequence: number; readonly position: number }>(
    url,
    'SELECT sequence::int, position::int, type FROM event ORDER BY position',
  );

const timestampOf = (clock: ManualClock) => String(Math.floor(clock.nowMs() / 1_000));

test('a database that was put back gives out no number, event or nonce again', { skip }, async (t) => {
  const clock = createManualClock();
  const { url, env, artseal, start, takeBackup, putBack } = await sandboxWithBackup(t, clock);
  const original = await start();
  const platform = await original.platform();
  const file = async (service: TestService, options = {}) => {
    const sent = await fileArtwork(service, platform, { timestamp: timestampOf(clock), ...options });
    assert.equal(sent.status, 200, sent.text);
    return sent.json.filingNo as string;
  };
  const sold = await file(original);
  assert.equal((await openEscrow(original, platform, sold)).status, 200);
  await original.close();
  await takeBackup();
  const restored = `database restored --taken-at ${utcTimestamp(clock.nowMs())}`;

  const lost = await start();
  const spent = { nonce: newNonce(), timestamp: String(Number(timestampOf(clock)) + 300) };
  const given = [sold, await file(lost, spent), await file(lost)];
  await artseal.errors(1, restored, /another artseal uses the database/);
  await lost.close();
  const before = await eventsOf(url);
  await putBack();

  await assert.rejects(start(), /older than what was published.*first run artseal database restored/);
  const planned = await runHere(['evidence', 'fork'], env);
  assert.match(
    planned.printed.join('\n'),
    /numbers a second time\.\nTo skip them, run artseal database restored/,
  );

  const recorded = await artseal.text(restored);
  assert.match(recorded, /^skipped: AS-\d{4}-000002 to AS-\d{4}-50\d{4}$/m);
  assert.match(recorded, /^skipped: \d+ escrow ids of \d{4}$/m);
  assert.match(recorded, /keep the newest log-checkpoint in .*run\nartseal evidence fork/);
  await artseal.errors(1, restored, /recorded already .*run artseal serve/);
  assert.deepEqual(await runSql(url, 'SELECT look_up_at_ms::int AS due FROM escrow'), [{ due: 0 }]);
  const forked = await artseal.text('evidence fork --accept');
  assert.doesNotMatch(forked, /numbers a second time/);

  const first = await start();
  assertRejected(await fileArtwork(first, platform, spent), 503, 'UNAVAILABLE');
  clock.advance(301_000);
  assertRejected(await fileArtwork(first, platform, spent), 503, 'UNAVAILABLE');
  given.push(await file(first), await file(first));
  assert.equal(new Set(given).size, 5);
  assert.match(given.at(-1) ?? '', /^AS-\d{4}-5\d{5}$/);
  const after = await eventsOf(url);
  const fresh = after.filter(({ sequence }) => sequence > 1_000_000);
  assert.ok(fresh.length >= 2 && fresh.every(({ position }) => position > 1_000_000));
  assert.deepEqual(
    after.filter((event) => !fresh.includes(event)),
    before.slice(0, after.length - fresh.length),
  );
  await first.close();
});

test('database restored is for PostgreSQL, and for the numbers that the database lacks', {
  skip,
}, async (t) => {
  const onSqlite = artsealWith({ ARTSEAL_DATA_DIR: temporaryFolder(t) });
  const line = 'database restored --taken-at 2026-11-21T09:15:00Z';
  await onSqlite.errors(2, line, /ARTSEAL_DATABASE_URL is not set: on SQLite, use artseal restore/);

  const { artseal, start, takeBackup, putBack, url } = await sandboxWithBackup(t, createManualClock());
  await artseal.errors(1, line, /no tables of Artseal/);
  const service = await start();
  const platform = await service.platform();
  const [first, second] = [await fileArtwork(service, platform), await fileArtwork(service, platform)];
  const year = String(first.json.filingNo).slice(3, 7);
  await service.close();
  await takeBackup();
  await putBack();
  for (const [last, why] of [
    ['AS-1999-000009', /is of no year since the backup was taken/],
    [`AS-${year}-000001`, /was given out before the backup/],
  ] as const)
    await artseal.errors(1, `database restored --taken-at 1m --numbers-after ${last}`, why);
  assert.deepEqual(await runSql(url, 'SELECT FROM restoration'), [], 'nothing is recorded');
  const { skipped } = await artseal.json(
    `database restored --taken-at 1m --numbers-after ${second.json.filingNo}`,
  );
  assert.deepEqual(
    skipped
      .filter(({ kind }: { kind: string }) => kind === 'FILING')
      .map(({ after }: { after: number }) => after),
    [2],
  );
});
