import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { scrape } from '../../support/metrics.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';

/** Ten minutes before the year ends in Shanghai, eight hours before it ends in UTC. */
const startMs = Date.UTC(2026, 11, 31, 15, 50);
const clock = createManualClock(startMs);
const env = { ARTSEAL_TIME_ZONE: 'Asia/Shanghai', ARTSEAL_METRICS_ADDR: '127.0.0.1:0' };
const service = await startService(fileScope, { clock, env });
const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
const painting = { ...artwork, price: BigInt(artwork.price) };

test('concurrent filings of a platform stop at its cap of the year, and continue in the next year', async () => {
  const [capped, other] = [await service.platform(), await service.platform()];
  const { admin } = await service.operator();
  const ratio = async () =>
    (await scrape(`http://${service.metricsAddress}/metrics`)).value('artseal_filing_cap_used_ratio');
  assert.equal(await ratio(), 0);
  await admin.updatePlatform({ caller: capped.caller, filingCap: 5n });
  const headers = { 'Idempotency-Key': 'beyond' };
  const answers = await Promise.all(Array.from({ length: 9 }, () => fileArtwork(service, capped, now())));
  assert.equal(answers.filter(({ status }) => status === 200).length, 5);
  const rejected = await fileArtwork(service, capped, { ...now(), headers });
  assertRejected(rejected, 429, 'FILING_CAP_REACHED', /^All 5 filings of 2026 /);
  assert.equal(rejected.headers['retry-after'], '600');
  clock.advance(1_001);
  assert.equal(await ratio(), 1);
  assert.equal((await fileArtwork(service, other, now())).status, 200);

  // The cap also applies to tokens of the platform.
  const { filings } = await service.clients({ platform: capped.caller });
  await typedError(filings.createFiling(painting), 'FILING_CAP_REACHED');

  await admin.updatePlatform({ caller: capped.caller, filingCap: 6n });
  assert.equal((await fileArtwork(service, capped, now())).status, 200);
  assertRejected(await fileArtwork(service, capped, now()), 429, 'FILING_CAP_REACHED');
  clock.advance(600_000);
  const next = await fileArtwork(service, capped, { ...now(), headers });
  assert.equal(next.json.filingNo, 'AS-2027-000001');
  assert.equal(await ratio(), 1 / 6);
});
