import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { serveIssued } from '../support/issued.ts';
import { listenLocally } from '../support/local-server.ts';
import { send } from '../support/signed-request.ts';
import type { WatchedService } from '../support/watched-command.ts';
import { type SentSpan, startCollector } from './collector.ts';

/** Log lines of calls. */
const callsIn = ({ logged }: WatchedService) => logged('"msg":"call"');

const filing = 'artseal.v1.FilingService/CreateFiling';
const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentSpanId = 'b7ad6b7169203331';
const otherTraceId = traceId.replaceAll('0', '1');
/** A caller that decided not to sample. */
const unsampled = { traceparent: `00-${otherTraceId}-${parentSpanId}-00` };

test('spans of a call, its store requests and its provider requests are sent to the collector', async (t) => {
  const collector = await startCollector(t);
  const service = await serveIssued(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: 'registry',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  });
  const { platform } = service;
  const spansOf = (name: string, count = 1) =>
    eventually(`${count} of ${name}`, 60_000, () => {
      const found = collector.spans.filter((span) => span.name === name);
      return found.length >= count && found;
    });

  await t.test('a call continues the trace of its caller', async () => {
    const headers = { traceparent: `00-${traceId}-${parentSpanId}-01`, tracestate: 'vendor=1' };
    const { json, headers: answered } = await fileArtwork(service, platform, { headers });
    assert.match(json.filingNo, /000001$/);
    const [span] = await spansOf(filing);
    assert.ok(span);
    const requestId = String(answered['x-request-id']);
    assert.deepEqual(span, {
      ...{ service: 'registry', traceId, parentSpanId, name: filing, kind: 2, status: 0 },
      spanId: span.spanId,
      attributes: {
        'artseal.listener': 'public',
        'artseal.request_id': requestId,
        'artseal.reason': 'OK',
        'http.response.status_code': 200,
      },
    });
    const [unit] = await spansOf('store FileArtwork');
    assert.deepEqual([unit?.traceId, unit?.parentSpanId], [traceId, span.spanId]);
    const line = await eventually('the line of the call', 60_000, () =>
      callsIn(service).find((found) => found.requestId === requestId),
    );
    assert.equal(line.traceId, traceId);
  });

  await t.test('requests to provider and store are child spans of the call', async () => {
    const { filingNo } = (await fileArtwork(service, platform, { headers: unsampled })).json;
    const { json } = await openEscrow(service, platform, filingNo);
    assert.equal(json.state, 'FROZEN');
    const [opening] = await spansOf('artseal.v1.EscrowService/CreateEscrow');
    const [asked] = await spansOf('provider FREEZE');
    const below = (span: SentSpan | undefined) => [span?.traceId, span?.parentSpanId];
    assert.deepEqual(below(asked), [opening?.traceId, opening?.spanId]);
    assert.equal(asked?.kind, 3);
    const [noted] = await spansOf('store RecordSent');
    assert.deepEqual(below(noted), [opening?.traceId, opening?.spanId]);
    assert.deepEqual([opening?.parentSpanId, opening?.status], ['', 0]);
  });

  await t.test(
    'a caller that decided not to sample is not traced, and a malformed parent is ignored',
    async () => {
      await fileArtwork(service, platform, { headers: unsampled });
      const malformed = [
        `00-${'0'.repeat(32)}-${parentSpanId}-01`,
        `ff-${otherTraceId}-${parentSpanId}-01`,
        'x'.repeat(500),
      ];
      for (const traceparent of malformed) await fileArtwork(service, platform, { headers: { traceparent } });
      const spans = await spansOf(filing, 1 + malformed.length);
      assert.equal(spans.length, 1 + malformed.length);
      assert.deepEqual(
        spans.slice(1).map((span) => span.parentSpanId),
        malformed.map(() => ''),
      );
      assert.ok(!collector.spans.some((span) => span.traceId === otherTraceId));
    },
  );

  await t.test('no span has text of a caller or a secret', async () => {
    const word = 'evil-word';
    await send(service.publicUrl, platform, { target: `/${word}`, headers: { 'X-Nonce': word } });
    await send(service.publicUrl, platform, { target: '/api/v1/filing', body: `{"author":"${word}"}` });
    await spansOf('none');
    await spansOf(filing, 5);
    assert.equal(await service.stop(), 0);
    for (const { bytes, path, type } of collector.requests) {
      assert.deepEqual([path, type], ['/v1/traces', 'application/x-protobuf']);
      for (const text of [word, platform.apiKey, platform.apiSecret, 'Qi Baishi']) {
        assert.ok(!Buffer.from(bytes).includes(text), text);
      }
    }
  });
});

for (const [what, open] of [
  ['is not there', closedPort],
  ['never answers', silentPort],
] as const) {
  test(`a collector that ${what} delays neither calls nor the exit, and is logged once`, async (t) => {
    const service = await serveIssued(t, {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${await open(t)}/v1/traces`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    });
    const warnings = () => service.logLines('collector');
    for (let call = 0; call < 20; call += 1) {
      assert.equal((await fileArtwork(service, service.platform)).status, 200);
    }
    await eventually('the line of the failure', 60_000, () => warnings().length > 0);
    assert.equal((await fileArtwork(service, service.platform)).status, 200);
    assert.equal(await service.stop(), 0);
    assert.equal(warnings().length, 1, warnings().join('\n'));
  });
}

/** A URL where nobody listens. */
async function closedPort(): Promise<string> {
  return `http://${await freeAddress()}`;
}

/** A URL that accepts connections and never responds. */
function silentPort(t: TestContext): Promise<string> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})));
  return listenLocally(t, server, () => {
    for (const socket of sockets) socket.destroy();
  });
}

test('an unknown sampler is logged, and calls work without traces', async (t) => {
  const service = await serveIssued(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: await closedPort(),
    OTEL_TRACES_SAMPLER: 'sometimes',
  });
  assert.equal((await fileArtwork(service, service.platform)).status, 200);
  const [call] = await eventually('the line of the call', 60_000, () => {
    const calls = callsIn(service);
    return calls.length > 0 && calls;
  });
  assert.match(service.stderr(), /OTEL_TRACES_SAMPLER must be one of always_on/);
  assert.equal(call?.traceId, undefined);
});
