import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { utcTimestamp } from '../../../src/domain/utc.ts';
import { restoreBackup } from '../../../src/operations/backup/restore.ts';
import { takeBackup } from '../../../src/operations/backup/take.ts';
import { onBadDisk } from '../../support/bad-disk.ts';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { openLedger } from '../../support/ledger.ts';
import { listenLocally } from '../../support/local-server.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import { newNonce } from '../../support/signed-request.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('on a disk that fails, signed reads are rejected because of their nonces, and internal reads are answered', async (t) => {
  const [service, disk] = await onBadDisk(t, () => startService(t));
  t.after(disk.heal);
  const platform = await service.platform();
  const { filings } = await service.clients();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const ledger = openLedger(t, service);
  const nonces = ledger.nonces();

  disk.failCommits();
  const nonce = newNonce();
  const timestamp = String(Math.floor(Date.now() / 1000));
  const read = () => askProvenance(service, platform, filingNo, { nonce, timestamp });
  assertRejected(await read(), 503, 'UNAVAILABLE');
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

test('a restored backup rejects every request that may have run after it was taken, and no other', async (t) => {
  const clock = createManualClock();
  const original = await startService(t, { clock });
  const platform = await original.platform();
  const file = join(temporaryFolder(t), 'backup.tar');
  await takeBackup({ dataDir: original.dataDir, target: file, nowMs: clock.nowMs(), progress: () => {} });
  // The newest checkpoint of the restored database: a later one would prevent its start.
  const checkpoint = readFileSync(join(original.dataDir, 'log-checkpoint'));
  const timestampIn = (seconds: number) => String(Math.floor(clock.nowMs() / 1000) + seconds);
  // The latest timestamp that is valid now.
  const request = { nonce: newNonce(), timestamp: timestampIn(300) };
  assert.equal((await fileArtwork(original, platform, request)).status, 200);
  await original.close();

  const into = join(temporaryFolder(t), 'restored');
  const calendar = createCalendar('UTC');
  const restoring = { file, into, calendar, currency: 'CNY', nowMs: clock.nowMs(), progress: () => {} };
  await restoreBackup({ ...restoring, numbersAfter: undefined, random: () => 0 });
  writeFileSync(join(into, 'log-checkpoint'), checkpoint);
  // A start that fails, here because its address is in use, does not begin the time of rejection.
  const taken = await listenLocally(t, createServer(), () => {});
  const env = { ARTSEAL_PUBLIC_ADDR: new URL(taken).host };
  await assert.rejects(startService(t, { clock, dataDir: into, env }), /cannot serve on/);
  clock.advance(60_000);
  const late = { nonce: newNonce(), timestamp: timestampIn(300) };
  const first = await startService(t, { clock, dataDir: into });
  const takenFrom = utcTimestamp(clock.nowMs() + 301_000);
  const notReady = [503, `Not ready: restored (signed calls are rejected until ${takenFrom}).`];
  assert.deepEqual(await ready(first), notReady);
  assertRejected(await fileArtwork(first, platform, late), 503, 'UNAVAILABLE');
  const rejected = await fileArtwork(first, platform, request);
  assertRejected(rejected, 503, 'UNAVAILABLE');
  assert.equal(rejected.headers['retry-after'], '301');
  assert.equal((await fileArtwork(first, platform, { timestamp: timestampIn(0) })).status, 503);
  const { filings } = await first.clients();
  assert.equal((await filings.listFilings({})).filings.length, 0);
  await first.close();

  // The time counts from the first start.
  clock.advance(300_000);
  const second = await startService(t, { clock, dataDir: into });
  assert.deepEqual(await ready(second), notReady);
  assertRejected(await fileArtwork(second, platform, request), 503, 'UNAVAILABLE');
  assertRejected(await fileArtwork(second, platform, { timestamp: timestampIn(0) }), 503, 'UNAVAILABLE');
  clock.advance(1_000);
  assert.deepEqual(await ready(second), [200, undefined]);
  assert.equal((await fileArtwork(second, platform, { timestamp: timestampIn(0) })).status, 200);
  assertRejected(await fileArtwork(second, platform, request), 503, 'UNAVAILABLE');
});
