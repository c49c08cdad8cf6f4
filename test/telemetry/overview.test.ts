import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GetOverviewResponse } from '../../gen/artseal/v1/admin_pb.ts';
import { growth, metricValue, shownMetrics } from '../../src/console/overview-data.ts';
import { metrics } from '../../src/telemetry/metrics/metrics.ts';
import { askProvenance, fileArtwork } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { startService } from '../support/service.ts';
import { openTestProvider } from '../support/simulator.ts';

const clock = createManualClock();
const provider = openTestProvider(fileScope, {}, clock);
const service = await startService(fileScope, { clock, provider });
const platform = await service.platform();
const { admin } = await service.operator();

const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });

/** The counts of the last sample as soon as `calls` calls are counted: a call is when its client has its response. */
function lastSample(calls: bigint): Promise<GetOverviewResponse> {
  return eventually('the calls', 60_000, async () => {
    const overview = await admin.getOverview({});
    return overview.samples.at(-1)?.calls === calls && overview;
  });
}

test('the overview counts calls and filings since the start, and has the metrics of now', async () => {
  assert.equal((await fetch(`${service.publicUrl}/healthz`)).status, 200);
  assert.equal((await fileArtwork(service, platform, now())).status, 200);
  assert.equal((await askProvenance(service, platform, 'AS-1999-000001', now())).status, 404);
  const overview = await lastSample(2n);
  const { $typeName, at, ...counts } = overview.samples.at(-1) ?? assert.fail();
  assert.deepEqual(counts, { calls: 2n, rejected: 1n, failed: 0n, filings: 1n });
  assert.equal(Number(at), Math.floor(clock.nowMs() / 1_000));
  assert.equal(metricValue(overview, 'numbersLeft', { kind: 'filing' }), 999_998);
  assert.equal(metricValue(overview, 'endpoints', { state: 'failing' }), 0);
  assert.deepEqual(overview.faults, []);
});

test('it is sampled once a minute, for a day', async () => {
  const before = (await admin.getOverview({})).samples.length;
  for (let minute = 0; minute < 3; minute += 1) clock.advance(60_000);
  assert.equal((await admin.getOverview({})).samples.length, before + 3);
  for (let minute = 0; minute < 1_500; minute += 1) clock.advance(60_000);
  const { samples } = await admin.getOverview({});
  // The last one is of now.
  assert.equal(samples.length, 1_441);
  assert.equal(samples.at(-1)?.calls, 2n);
});

test('the console names only metrics that there are', () => {
  const names = metrics.map(({ name }) => name);
  for (const name of Object.values(shownMetrics)) assert.ok(names.includes(name), name);
});

test('a plot shows how much the counts grew in equal periods, the last of which ends now', () => {
  const samples = Array.from({ length: 8 }, (_, minute) => {
    const counts = { calls: BigInt(minute * 10), rejected: 0n, failed: 0n, filings: BigInt(minute) };
    return { ...counts, at: BigInt(minute * 60) } as GetOverviewResponse['samples'][number];
  });
  const { times, grown } = growth(samples, 3);
  assert.deepEqual(times, [240, 420]);
  assert.deepEqual(grown('calls'), [30, 30]);
  assert.deepEqual(growth(samples.slice(0, 1), 3).times, []);
  assert.deepEqual(growth([], 3).grown('filings'), []);
});
