import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Escrow_Type } from '../../gen/artseal/v1/escrow_pb.ts';
import { transports } from '../http/connect/transports.ts';
import { fileArtwork } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { scrape } from '../support/metrics.ts';
import { rawRequest } from '../support/raw-http.ts';
import { escrowTerms } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { headersOf } from '../support/signed-request.ts';
import { openTestProvider } from '../support/simulator.ts';
import { typedClients } from '../support/typed-clients.ts';

const provider = openTestProvider(fileScope);
provider.treat({ FREEZE: 'KEPT_BACK' });
const env = { ARTSEAL_METRICS_ADDR: '127.0.0.1:0' };
const service = await startService(fileScope, { provider, env });
const platform = await service.platform();
const token = await service.token(true);
const infoLevel = 30;

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly operation?: string;
  readonly reason?: string;
}

const lines = (): Line[] => service.logLines.map((line) => JSON.parse(line));

/** Gives up a call of an operation, and asserts how it is logged and counted. */
async function assertCancelled(
  listener: string,
  operation: string,
  giveUp: () => Promise<void>,
): Promise<void> {
  const before = lines().length;
  await giveUp();
  const line = await eventually('the line of the call', 60_000, () =>
    lines()
      .slice(before)
      .find((found) => found.msg === 'call' && found.operation === operation),
  );
  assert.deepEqual([line.reason, line.level], ['CANCELLED', infoLevel], JSON.stringify(line));
  // Metrics are a second old at most.
  const ends = await eventually('the metrics', 60_000, async () => {
    const metrics = await scrape(`http://${service.metricsAddress}/metrics`);
    const found = metrics
      .labelsOf('artseal_calls_total')
      .filter(
        (labels) => labels.listener === listener && labels.operation === operation && labels.reason !== 'OK',
      )
      .map(({ reason }) => reason);
    return found.length > 0 && found;
  });
  assert.deepEqual(ends, ['CANCELLED']);
}

const opening = 'artseal.v1.EscrowService/CreateEscrow';

/** Waits until the provider has an order in hand, gives up with `giveUp`, and has the order answered. */
async function whileItIsOpened(giveUp: () => void): Promise<void> {
  const before = provider.instructions.length;
  await eventually('the order is in hand', 60_000, () => provider.instructions.length > before);
  giveUp();
  await provider.answer();
}

const isHttp2 = ([name]: readonly [string, unknown]) => name.endsWith('HTTP/2');

// A client of HTTP/1.1 that closes its connection is answered: it may have closed only its half.
for (const [name, transport] of Object.entries(transports).filter(isHttp2)) {
  test(`a typed call that its client gives up is CANCELLED: ${name}`, async () => {
    const { filingNo } = (await fileArtwork(service, platform)).json;
    await assertCancelled('internal', opening, async () => {
      const { escrows } = typedClients(transport(service.internalUrl, token));
      const { signal, abort } = abortable();
      const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
      const call = assert.rejects(escrows.createEscrow(terms, { signal }));
      await whileItIsOpened(abort);
      await call;
    });
  });
}

for (const [name, transport] of Object.entries(transports)) {
  test(`a stream that its client leaves is CANCELLED: ${name}`, async () => {
    await assertCancelled('internal', 'artseal.v1.EventService/WatchEvents', async () => {
      const { events } = typedClients(transport(service.internalUrl, token));
      const { signal, abort } = abortable();
      const stream = events.watchEvents({}, { signal })[Symbol.asyncIterator]();
      await stream.next();
      abort();
      await assert.rejects(async () => {
        for (;;) await stream.next();
      });
    });
  });
}

test('a REST call whose client resets its connection is CANCELLED', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  await assertCancelled('public', opening, async () => {
    const [target, body] = ['/api/v1/escrow', JSON.stringify(escrowTerms(filingNo))];
    const { hostname, port } = new URL(service.publicUrl);
    const socket = connect({ host: hostname, port: Number(port) });
    const headers = {
      Host: 'x',
      'Content-Length': String(body.length),
      ...headersOf(platform, { target, body }),
    };
    socket.write(rawRequest('POST', target, headers, body));
    await whileItIsOpened(() => socket.resetAndDestroy());
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
