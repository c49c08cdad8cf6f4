import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { readConfig } from '../../../src/config/config.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { utcTimestamp } from '../../../src/domain/utc.ts';
import { restoreBackup } from '../../../src/operations/backup/restore.ts';
import { takeBackup } from '../../../src/operations/backup/take.ts';
import { openRegistry } from '../../../src/operations/registry.ts';
import { tester } from '../../support/audit-log.ts';
import { onBadDisk } from '../../support/bad-disk.ts';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRefused } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import { newNonce } from '../../support/signed-request.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { typedClients } from '../../support/typed-clients.ts';

test('a disk that takes nothing refuses signed reads too, for their nonces; typed reads are answered', async (t) => {
  const [service, disk] = await onBadDisk(t, () => startService(t));
  t.after(disk.heal);
  const platform = await service.platform();
  const { filings } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const ledger = openLedger(t, service);
  const nonces = ledger.nonces();

  disk.failCommits();
  const nonce = newNonce();
  const timestamp = String(Math.floor(Date.now() / 1000));
  const read = () => askProvenance(service, platform, filingNo, { nonce, timestamp });
  assertRefused(await read(), 503, 'UNAVAILABLE');
  assert.equal(ledger.nonces(), nonces);
  assert.equal((await filings.getFiling({ filingNo })).filing?.filingNo, filingNo);

  disk.heal();
  assert.equal((await read()).status, 200);
  assert.equal(ledger.nonces(), nonces + 1);
});

/** Status and message of /readyz. */
async function ready({ publicUrl }: TestService): Promise<[number, string | undefined]> {
  const answer = await fetch(`${publicUrl}/readyz`);
  const { message } = (await answer.json()) as { message?: string };
  return [answer.status, message];
}

test('a copied folder takes requests again that were carried out after it, for ten minutes', async (t) => {
  const clock = createManualClock();
  const [dataDir, restored] = [temporaryFolder(t), temporaryFolder(t)];
  const backedUp = await startService(t, { clock, dataDir });
  const platform = await backedUp.platform();
  await backedUp.close();
  copyFolder(dataDir, restored);

  // As late as a request can be valid that was carried out now.
  const request = { nonce: newNonce(), timestamp: String(Math.floor(clock.nowMs() / 1000) + 300) };
  const serving = await startService(t, { clock, dataDir });
  assert.equal((await fileArtwork(serving, platform, request)).status, 200);
  assertRefused(await fileArtwork(serving, platform, request), 401, 'NONCE_REUSED');
  await serving.close();

  const tenMinutesMs = 600_000;
  const early = temporaryFolder(t);
  copyFolder(restored, early);
  clock.advance(tenMinutesMs);
  assert.equal(
    (await fileArtwork(await startService(t, { clock, dataDir: early }), platform, request)).status,
    200,
  );
  clock.advance(1_000);
  const late = await startService(t, { clock, dataDir: restored });
  assertRefused(await fileArtwork(late, platform, request), 401, 'TIMESTAMP_EXPIRED');
});

test('a restored backup refuses all that may have been carried out after it, and only that', async (t) => {
  const clock = createManualClock();
  const original = await startService(t, { clock });
  const platform = await original.platform();
  const token = await original.token();
  const file = join(temporaryFolder(t), 'backup.tar');
  await takeBackup({ dataDir: original.dataDir, target: file, nowMs: clock.nowMs(), progress: () => {} });
  // As if it were the newest one: what is published later has the restored database refused.
  const checkpoint = readFileSync(join(original.dataDir, 'log-checkpoint'));
  const timestampIn = (seconds: number) => String(Math.floor(clock.nowMs() / 1000) + seconds);
  // As late as a request can be valid that is carried out now.
  const request = { nonce: newNonce(), timestamp: timestampIn(300) };
  assert.equal((await fileArtwork(original, platform, request)).status, 200);
  await original.close();

  const into = join(temporaryFolder(t), 'restored');
  const calendar = createCalendar('UTC');
  const restoring = { file, into, calendar, currency: 'CNY', nowMs: clock.nowMs(), progress: () => {} };
  await restoreBackup({ ...restoring, numbersAfter: undefined, random: () => 0 });
  writeFileSync(join(into, 'log-checkpoint'), checkpoint);
  // A start that fails, here since the address is that of another, says nothing about the original.
  const taken = await startService(t);
  const env = { ARTSEAL_PUBLIC_ADDR: taken.publicAddress };
  await assert.rejects(startService(t, { clock, dataDir: into, env }), /cannot serve on/);
  clock.advance(60_000);
  const late = { nonce: newNonce(), timestamp: timestampIn(300) };
  const first = await startService(t, { clock, dataDir: into });
  const takenFrom = utcTimestamp(clock.nowMs() + 301_000);
  const notReady = [503, `Not ready: restored (signed calls are rejected until ${takenFrom}).`];
  assert.deepEqual(await ready(first), notReady);
  assertRefused(await fileArtwork(first, platform, late), 503, 'UNAVAILABLE');
  const refused = await fileArtwork(first, platform, request);
  assertRefused(refused, 503, 'UNAVAILABLE');
  assert.equal(refused.headers['retry-after'], '301');
  assert.equal((await fileArtwork(first, platform, { timestamp: timestampIn(0) })).status, 503);
  const { filings } = typedClients(createTypedTransport(first.internalUrl, token));
  assert.equal((await filings.listFilings({})).filings.length, 0);
  await first.close();

  // The time is that of the first start; another one changes nothing about it.
  clock.advance(300_000);
  const second = await startService(t, { clock, dataDir: into });
  assert.deepEqual(await ready(second), notReady);
  assertRefused(await fileArtwork(second, platform, request), 503, 'UNAVAILABLE');
  assertRefused(await fileArtwork(second, platform, { timestamp: timestampIn(0) }), 503, 'UNAVAILABLE');
  clock.advance(1_000);
  assert.deepEqual(await ready(second), [200, undefined]);
  assert.equal((await fileArtwork(second, platform, { timestamp: timestampIn(0) })).status, 200);
  assertRefused(await fileArtwork(second, platform, request), 503, 'UNAVAILABLE');
  await second.close();

  clock.advance(300_000);
  const third = await startService(t, { clock, dataDir: into });
  assertRefused(await fileArtwork(third, platform, request), 401, 'TIMESTAMP_EXPIRED');
  assert.equal((await fileArtwork(third, platform, { timestamp: timestampIn(0) })).status, 200);
});

test('a key sealed under a master key that was added in the variable is refused until a restart', async (t) => {
  const dataDir = temporaryFolder(t);
  const [old, added] = [`old:${'0'.repeat(64)}`, `added:${'1'.repeat(64)}`];
  const running = await startService(t, { dataDir, env: { ARTSEAL_MASTER_KEY: old } });
  const both = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_MASTER_KEY: `${added},${old}` };
  const { store, issuance } = await openRegistry(readConfig(both), 'EXISTING');
  const { key, apiSecret } = await issuance.issueKey(
    {
      name: 'new',
      tier: 'TRIAL',
      monthlyQuota: undefined,
      unlimited: false,
    },
    tester,
  );
  await store.close();
  const platform = { apiKey: key.apiKey, apiSecret };

  assertRefused(await fileArtwork(running, platform), 503, 'UNAVAILABLE', /cannot be verified/);
  await running.close();
  const restarted = await startService(t, { dataDir, env: both });
  assert.equal((await fileArtwork(restarted, platform)).status, 200);
});
