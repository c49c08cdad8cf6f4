import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { createTypedTransport } from '../../src/client/typed.ts';
import { reasons } from '../../src/domain/reason.ts';
import { OpenCalls } from '../../src/http/listen/open-calls.ts';
import { sealUrl } from '../../src/keys/sealed-secrets.ts';
import { silentLog } from '../../src/lib/log.ts';
import { writeBackupStatus } from '../../src/operations/backup/standing.ts';
import type { Access } from '../../src/payments/provider.ts';
import { metrics } from '../../src/telemetry/metrics/metrics.ts';
import { createMetricsListener } from '../../src/telemetry/metrics/metrics-listener.ts';
import { askProvenance, fileArtwork, openEscrow } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { type Scraped, scrape } from '../support/metrics.ts';
import { rawAnswer, rawExchange } from '../support/raw-http.ts';
import { startService, type TestService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { openTestProvider } from '../support/simulator.ts';
import { typedClients } from '../support/typed-clients.ts';

const onAnyPort = { ARTSEAL_METRICS_ADDR: '127.0.0.1:0' };
const metricsUrl = ({ metricsAddress }: TestService) => `http://${metricsAddress}/metrics`;

const clock = createManualClock();
const provider = openTestProvider(fileScope, {}, clock);
const service = await startService(fileScope, { clock, provider, env: onAnyPort });
const platform = await service.platform();

/** The metrics now. They are cached for a second. */
async function metricsNow(): Promise<Scraped> {
  clock.advance(1_000);
  return scrape(metricsUrl(service));
}

/** The first metrics for which `holds` is true. A call is counted when its connection has accepted the response. */
function metricsWith(holds: (metrics: Scraped) => boolean, from = metricsNow): Promise<Scraped> {
  return eventually('the metrics', 60_000, async () => {
    const metrics = await from();
    return holds(metrics) && metrics;
  });
}

const filing = 'artseal.v1.FilingService/CreateFiling';
const listing = 'artseal.v1.FilingService/ListFilings';
const getting = 'artseal.v1.FilingService/GetFiling';
const calls = (metrics: Scraped, listener: string, operation: string, reason: string) =>
  metrics.value('artseal_calls_total', { listener, operation, reason }) ?? 0;

/** The timestamp of a call, by the clock of the service. */
const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });

/** Sends a request without credentials. */
const unsigned = async (target: string, init: RequestInit = {}) =>
  (await fetch(`${service.publicUrl}${target}`, init)).text();

test('calls are counted by listener, operation and reason, and so are their durations', async () => {
  const before = await metricsNow();
  await fileArtwork(service, platform, now());
  await fileArtwork(service, platform, now());
  await fileArtwork(service, platform, { ...now(), signature: '0'.repeat(64) });
  await askProvenance(service, platform, 'AS-2026-999999', now());
  const { filings } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  await filings.listFilings({ pageSize: 1 });
  const after = await metricsWith((metrics) => calls(metrics, 'internal', listing, 'OK') > 0);
  const more = (...labels: [listener: string, operation: string, reason: string]) =>
    calls(after, ...labels) - calls(before, ...labels);
  assert.equal(more('public', filing, 'OK'), 2);
  assert.equal(more('public', 'none', 'SIGNATURE_INVALID'), 1);
  assert.equal(more('public', 'artseal.v1.ProvenanceService/GetProvenance', 'FILING_NOT_FOUND'), 1);
  assert.equal(more('internal', listing, 'OK'), 1);
  const labels = { listener: 'public', operation: filing, reason: 'OK' };
  const counted = calls(after, 'public', filing, 'OK');
  assert.equal(after.value('artseal_call_duration_seconds_count', labels), counted);
  assert.equal(after.value('artseal_call_duration_seconds_bucket', { ...labels, le: '+Inf' }), counted);
  assert.ok((after.value('artseal_call_duration_seconds_sum', labels) ?? 0) > 0);
});

test('no label has text of callers: operations are those of the schema, reasons those of the table', async () => {
  const word = `evil-${randomUUID()}`;
  for (const target of [`/${word}`, `/api/v1/${word}?${word}`, `/${word}${'x'.repeat(3_000)}`]) {
    await unsigned(target);
    await send(service.publicUrl, platform, { ...now(), target });
  }
  await unsigned('/api/v1/filing', { method: 'POST', headers: { 'X-Api-Key': word }, body: word });
  for (const path of [`/${word}`, `/artseal.v1.FilingService/${word}`, `/${getting}`]) {
    const body = JSON.stringify({ filingNo: word });
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${word}` };
    await (await fetch(`${service.internalUrl}${path}`, { method: 'POST', headers, body })).text();
  }
  const metrics = await metricsWith(
    (metrics) => calls(metrics, 'internal', getting, 'AUTH_HEADER_INVALID') > 0,
  );
  assert.doesNotMatch(metrics.text, new RegExp(`${word}|${platform.apiKey}|${platform.caller}`));
  for (const { operation = '', reason = '' } of metrics.labelsOf('artseal_calls_total')) {
    assert.match(
      operation,
      /^(none|payment notification|\/(healthz|readyz|version|openapi\.yaml)|(artseal|grpc)\.[\w.]+\/\w+)$/,
    );
    assert.ok(reason === 'OK' || reason in reasons, reason);
  }
});

test('metrics show the numbers left, orders by state and age, and requests to the provider', async () => {
  const before = await metricsNow();
  const { filingNo } = (await fileArtwork(service, platform, now())).json;
  await openEscrow(service, platform, filingNo, {}, now());
  const after = await metricsNow();
  const more = (name: string, labels: Record<string, string> = {}) =>
    (after.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
  assert.equal(more('artseal_numbers_left', { kind: 'filing' }), -1);
  assert.equal(more('artseal_numbers_left', { kind: 'escrow' }), -1);
  assert.equal(after.value('artseal_numbers_limit', { kind: 'filing' }), 999_999);
  assert.equal(after.value('artseal_numbers_limit', { kind: 'escrow' }), 36 ** 4);
  assert.equal(more('artseal_escrow_orders', { state: 'FROZEN' }), 1);
  assert.equal(more('artseal_escrow_open_orders', { state: 'FROZEN', age: 'under_10m' }), 1);
  assert.equal(more('artseal_payment_provider_request_duration_seconds_count', { request: 'FREEZE' }), 1);
  clock.advance(3_600_000);
  const later = await metricsNow();
  assert.equal(later.value('artseal_escrow_open_orders', { state: 'FROZEN', age: 'under_10m' }), 0);
  assert.equal(later.value('artseal_escrow_open_orders', { state: 'FROZEN', age: 'under_1d' }), 1);
});

test('events are counted, and so are the calls that wait for one', async () => {
  const gallery = await service.platform();
  const before = await metricsNow();
  const poll = send(service.publicUrl, gallery, {
    ...now(),
    target: '/api/v1/events?after=0&waitSeconds=30',
  });
  const { events } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const gone = new AbortController();
  const stream = events.watchEvents({}, { signal: gone.signal })[Symbol.asyncIterator]();
  await stream.next();
  const waiting = (metrics: Scraped) => [
    metrics.value('artseal_event_polls_waiting'),
    metrics.value('artseal_event_streams'),
  ];
  await metricsWith((metrics) => waiting(metrics).join() === '1,1');
  await fileArtwork(service, gallery, now());
  assert.equal((await poll).json.events.length, 1);
  gone.abort();
  const after = await metricsWith((metrics) => waiting(metrics).join() === '0,0');
  const total = (metrics: Scraped) => metrics.value('artseal_events_total') ?? Number.NaN;
  assert.equal(total(after) - total(before), 1);
});

test('webhook attempts are counted, and webhooks by their state, until one is disabled', async (t) => {
  const clock = createManualClock();
  const sending = await startService(t, {
    ...{ clock, env: onAnyPort },
    provider: openTestProvider(t, {}, clock),
  });
  const gallery = await sending.platform();
  const { callerId: owner } = await sending.execute({ kind: 'FindCaller', name: gallery.caller });
  // Loopback is not an allowed target.
  const url = sealUrl(sending.keyRing, 'wh_1', 'https://127.0.0.1/');
  const described = { webhookId: 'wh_1', ...url, eventTypes: undefined, description: '' };
  const sealedSecret = sending.keyRing.seal(`whsec_${Buffer.alloc(32).toString('base64')}`, 'wh_1');
  const webhook = { ...described, sealedSecret, createdAtS: Math.floor(clock.nowMs() / 1_000) };
  await sending.execute({ kind: 'AddWebhook', owner, webhook });
  const from = () => {
    clock.advance(1_000);
    return scrape(metricsUrl(sending));
  };
  const states = (metrics: Scraped) =>
    ['healthy', 'failing', 'disabled'].map((state) => metrics.value('artseal_webhook_endpoints', { state }));
  assert.deepEqual(states(await from()), [1, 0, 0]);
  await fileArtwork(sending, gallery, { timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  const failing = await metricsWith((metrics) => states(metrics)[1] === 1, from);
  assert.equal(failing.value('artseal_webhook_attempts_total', { outcome: 'failed' }), 1);
  assert.equal(failing.value('artseal_webhook_attempts_total', { outcome: 'delivered' }), 0);
  assert.equal(failing.value('artseal_webhook_deliveries', { status: 'pending' }), 1);
  assert.equal(failing.value('artseal_webhook_lag_seconds'), 0);

  const { id } = await sending.execute({ kind: 'FindWebhook', webhookId: 'wh_1', owner });
  const longAgo = { atMs: clock.nowMs() - 432_000_000, isDelivered: false, retryAtMs: clock.nowMs() };
  const outcome = { id, sequence: 1, attempts: 1, ...longAgo, httpStatus: null, answer: null, error: null };
  await sending.execute({ kind: 'RecordAttempts', outcomes: [outcome] });
  assert.ok(((await from()).value('artseal_webhook_longest_failing_seconds') ?? 0) >= 432_000);
  const disabled = await metricsWith((metrics) => states(metrics)[2] === 1, from);
  assert.equal(disabled.value('artseal_webhook_disabled_total'), 1);
  assert.equal(disabled.value('artseal_webhook_longest_failing_seconds'), 0);
});

test('requests without a response of the provider are counted by kind, with their age', async (t) => {
  const failures = (metrics: Scraped, kind: string) =>
    metrics.value('artseal_payment_provider_failures_total', { request: 'FREEZE', kind }) ?? Number.NaN;
  const before = await metricsNow();
  t.after(() => provider.treat({ FREEZE: 'CONFIRMED' }));
  provider.treat({ FREEZE: 'LOST' });
  provider.treatLookUps({ kind: 'LOST' });
  const numbers = [await fileArtwork(service, platform, now()), await fileArtwork(service, platform, now())];
  const [first, second] = numbers.map(({ json }) => json.filingNo);
  assert.equal((await openEscrow(service, platform, first, {}, now())).json.code, 'PAYMENT_PENDING');
  provider.treat({ FREEZE: 'SILENT' });
  const silent = openEscrow(service, platform, second, {}, now());
  const unknown = { kind: 'FREEZE', status: 'UNKNOWN' };
  const givenUp = await metricsWith((metrics) => {
    clock.advance(5_000);
    return metrics.value('artseal_escrow_open_instructions', unknown) === 2;
  });
  assert.equal((await silent).json.code, 'PAYMENT_PENDING');
  assert.equal(failures(givenUp, 'UNREACHABLE') - failures(before, 'UNREACHABLE'), 1);
  assert.equal(failures(givenUp, 'UNANSWERED') - failures(before, 'UNANSWERED'), 1);
  assert.ok((givenUp.value('artseal_escrow_oldest_unanswered_seconds') ?? 0) >= 5);
  assert.ok((givenUp.value('artseal_escrow_unanswered_attempts') ?? 0) >= 2);
});

test('a key that the provider rejects raises its gauge within a minute', async (t) => {
  const clock = createManualClock();
  let access: Access = { kind: 'ACCEPTED' };
  const provider = { ...openTestProvider(t, {}, clock), checkAccess: async () => access };
  const watched = await startService(t, { clock, provider, env: onAnyPort });
  const raised = async () => {
    const { value } = await scrape(metricsUrl(watched));
    const names = [
      'artseal_payment_provider_reached',
      'artseal_payment_provider_credentials_rejected',
    ] as const;
    return [...names.map((name) => value(name)), value('artseal_ready_part', { part: 'payment_provider' })];
  };
  assert.deepEqual(await raised(), [1, 0, 1]);
  access = { kind: 'REJECTED', why: 'the key was revoked' };
  clock.advance(60_000);
  await turnOfTheLoop();
  assert.deepEqual(await raised(), [1, 1, 0]);
});

test('a failed backup of a command raises its gauge, and the last verified one is shown', async () => {
  const takenAt = '2026-11-20T03:10:00.000Z';
  const last = { file: join(service.dataDir, 'artseal.db'), takenAt };
  writeBackupStatus(service.dataDir, { last, failure: { at: takenAt, reason: 'no room' } });
  const failing = await metricsWith((metrics) => {
    clock.advance(10_000);
    return metrics.value('artseal_backup_failing') === 1;
  });
  assert.equal(failing.value('artseal_backup_taken_seconds'), Date.parse(takenAt) / 1_000);
});

test('scrapes within a second get the same text', async () => {
  const first = await metricsNow();
  await fileArtwork(service, platform, now());
  assert.equal((await scrape(metricsUrl(service))).text, first.text);
  assert.notEqual((await metricsNow()).text, first.text);
});

test('without its files the store is down, and the other metrics are there', async (t) => {
  const moved = await startService(t, { env: onAnyPort });
  const file = join(moved.dataDir, 'artseal.db');
  renameSync(file, `${file}.away`);
  t.after(() => renameSync(`${file}.away`, file));
  const from = () => scrape(metricsUrl(moved));
  const metrics = await metricsWith((metrics) => metrics.value('artseal_store_up') === 0, from);
  assert.deepEqual(
    [metrics.value('artseal_ready'), metrics.value('artseal_ready_part', { part: 'store' })],
    [0, 0],
  );
  assert.equal(metrics.value('artseal_ready_part', { part: 'clock' }), 1);
  assert.equal(metrics.value('artseal_escrow_orders_in_review'), undefined);
  assert.ok((metrics.value('process_resident_memory_bytes') ?? 0) > 0);
});

test('only GET and HEAD of /metrics are accepted', async () => {
  const url = metricsUrl(service);
  const head = await fetch(url, { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.match(head.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  const post = await fetch(url, { method: 'POST', body: 'x'.repeat(100_000) });
  assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD']);
  assert.equal((await fetch(new URL('/', url))).status, 404);
  assert.equal((await fetch(`${url}?format=openmetrics`)).status, 200);
});

const request = (host: string, more = '') => `GET /metrics HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;

test('metrics are read under names of this machine, and not under a name that only resolves to it', async () => {
  const own = ['localhost:9464', '127.0.0.1', '[::1]:9464', '192.0.2.7:9464', 'artseal:9464', 'LOCALHOST'];
  const foreign = ['rebound.example', 'rebound.example:9464', '127.0.0.1.example', 'localhost.', '[', ''];
  for (const [status, hosts] of [
    [200, own],
    [421, foreign],
  ] as const)
    for (const host of hosts) {
      const response = await rawAnswer(metricsUrl(service), request(host));
      assert.equal(response.status, status, host);
      assert.equal(response.text.includes('artseal_'), status === 200);
    }
});

test('metrics are read under the name of the listener', async () => {
  const scrape = async () => 'artseal_ready 1\n';
  const listener = createMetricsListener({
    ...{ scrape, log: silentLog, host: 'Metrics.Example' },
    openCalls: new OpenCalls(),
  });
  fileScope.after(() => listener.close());
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const response = await rawAnswer(`http://127.0.0.1:${port}`, request('metrics.example:9464'));
  assert.equal(response.status, 200);
});

test('no transfer coding but chunked is accepted', async () => {
  const coded = request('localhost', 'Transfer-Encoding: gzip, chunked\r\n');
  const { status, headers } = await rawAnswer(metricsUrl(service), `${coded}0\r\n\r\n`);
  assert.deepEqual([status, headers.connection], [400, 'close']);
});

test('a connection that sends requests ahead of its responses is cut off', async () => {
  const cutOff = await rawExchange(metricsUrl(service), request('a').repeat(2_000));
  assert.deepEqual(cutOff, { answers: [], closed: true });
});

test('the listener holds 32 connections, and a new one replaces the oldest', async (t) => {
  const { hostname: host, port } = new URL(metricsUrl(service));
  const open = new Set<Socket>();
  t.after(() => {
    for (const socket of open) socket.destroy();
  });
  for (let count = 0; count < 40; count += 1) {
    const socket = connect({ host, port: Number(port) });
    open.add(socket.on('error', () => {}).on('close', () => open.delete(socket)));
    await once(socket, 'connect');
  }
  await eventually('the oldest are cut off', 60_000, () => open.size <= 32);
  assert.equal((await rawAnswer(`http://${host}:${port}`, request('a'))).status, 200);
});

test('no listener is open if metrics are off', async (t) => {
  const { metricsAddress } = await startService(t, { env: { ARTSEAL_METRICS_ADDR: 'off' } });
  assert.equal(metricsAddress, undefined);
});

test('each metric has its documented labels', async () => {
  const scraped = await metricsNow();
  for (const { name, type, labels = [] } of metrics) {
    const sample = type === 'histogram' ? `${name}_count` : name;
    for (const found of scraped.labelsOf(sample)) assert.deepEqual(Object.keys(found), labels, name);
  }
});
