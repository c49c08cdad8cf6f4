import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askProvenance, fileArtwork, openEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { scrape } from '../../support/metrics.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';

const noonMs = Date.UTC(2026, 5, 10, 12);
const dayS = 86_400;
const clock = createManualClock(noonMs);
const env = { ARTSEAL_METRICS_ADDR: '127.0.0.1:0' };
const service = await startService(fileScope, { clock, env });
const platform = await service.platform();

const nowS = () => Math.floor(clock.nowMs() / 1_000);
const stamped = () => ({ timestamp: String(nowS()) });
const file = () => fileArtwork(service, platform, stamped());
const setBy = (seconds: number) => clock.setWall(clock.nowMs() + seconds * 1_000);
const metricsOf = () => scrape(`http://${service.metricsAddress}/metrics`);

/** The operator's command, on a machine with the same clock by default. */
const accept = (atS = nowS()) =>
  service.execute({ kind: 'AcceptClock', by: { actor: 'operator', atS, reason: undefined } });

/** Lets seconds pass until a condition holds. */
function passUntil<Found>(what: string, find: () => Promise<Found> | Found): Promise<Exclude<Found, false>> {
  return eventually(what, 60_000, () => {
    clock.advance(1_000);
    return find();
  }) as Promise<Exclude<Found, false>>;
}

const linesLike = (pattern: RegExp) => service.logLines.filter((line) => pattern.test(line));
const rejecting = /filings are rejected until the clock is right/;
const accepting = /the clock is right again/;

/** Waits until filings were rejected, or accepted again, this many times. */
const noted = (pattern: RegExp, times: number) =>
  passUntil(`${pattern}`, () => linesLike(pattern).length === times);

test('filings are rejected while the clock is behind the newest record; other calls are not', async () => {
  const { filingNo } = (await file()).json;
  const second = (await file()).json.filingNo;
  setBy(-100);
  const answer = await file();
  assertRejected(answer, 503, 'UNAVAILABLE', /the clock is 100 s behind the newest record/, /clock accept/);
  assert.equal(answer.headers['retry-after'], '60');
  setBy(90);
  assert.equal((await file()).headers['retry-after'], '10');
  assert.equal((await askProvenance(service, platform, filingNo, stamped())).status, 200);
  assert.equal((await openEscrow(service, platform, second, {}, stamped())).status, 200);
  await noted(rejecting, 1);
  await noted(accepting, 1);
  assert.equal((await file()).status, 200);
  assert.match(linesLike(rejecting)[0] ?? '', /"level":50.*the clock is \d+ s behind the newest record/);
});

test('filings are accepted within a second after an operator accepts the clock, and metrics show the fault', async () => {
  setBy(40 * dayS);
  await noted(rejecting, 2);
  await passUntil(
    'the metric',
    async () => (await metricsOf()).value('artseal_filing_clock_wrong', {}) === 1,
  );
  await accept();
  await noted(accepting, 2);
  assert.equal((await file()).status, 200);
  setBy(-40 * dayS);
  assertRejected(await file(), 503, 'UNAVAILABLE', /behind the newest record/);
  await accept();
  await passUntil('filings are accepted', async () => (await file()).status === 200);
  const metrics = await passUntil('the metrics', async () => {
    const scraped = await metricsOf();
    return scraped.value('artseal_filing_clock_wrong', {}) === 0 && scraped;
  });
  assert.ok((metrics.value('artseal_filing_clock_rejections_total', {}) ?? 0) >= 3);
});

test('the clock of another instance is accepted for that one only', async () => {
  const timesRejected = linesLike(rejecting).length;
  setBy(40 * dayS);
  await noted(rejecting, timesRejected + 1);
  const timesAccepted = linesLike(accepting).length;
  await accept(nowS() - 40 * dayS);
  for (let checks = 0; checks < 3; checks += 1) {
    clock.advance(1_000);
    await file();
  }
  assertRejected(await file(), 503, 'UNAVAILABLE', /the clock was set forward by \d+ s \(40 days\)/);
  assert.equal(linesLike(accepting).length, timesAccepted);
  await accept();
  await noted(accepting, timesAccepted + 1);
  assert.equal((await file()).status, 200);
});
