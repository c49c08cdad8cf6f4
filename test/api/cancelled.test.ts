import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Escrow_Type } from '../../gen/artseal/v1/escrow_pb.ts';
import { fileArtwork } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { rawRequest } from '../support/raw-http.ts';
import { escrowTerms } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { headersOf } from '../support/signed-request.ts';
import { openTestProvider } from '../support/simulator.ts';

const provider = openTestProvider(fileScope);
provider.treat({ FREEZE: 'KEPT_BACK' });
const env = { ARTSEAL_METRICS_ADDR: '127.0.0.1:0' };
const service = await startService(fileScope, { provider, env });
const platform = await service.platform();
const infoLevel = 30;

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly operation?: string;
  readonly reason?: string;
}

const lines = (): Line[] => service.logLines.map((line) => JSON.parse(line));

/** Breaks off a call of an operation, and asserts how it is logged. */
async function assertCancelled(operation: string, breakOff: () => Promise<void>): Promise<void> {
  const before = lines().length;
  await breakOff();
  const line = await eventually('the line of the call', 60_000, () =>
    lines()
      .slice(before)
      .find((found) => found.msg === 'call' && found.operation === operation),
  );
  assert.deepEqual([line.reason, line.level], ['CANCELLED', infoLevel], JSON.stringify(line));
}

const opening = 'artseal.v1.EscrowService/CreateEscrow';

/** Waits until the provider has an order, breaks the call off, and lets the provider answer. */
async function whileItIsOpened(breakOff: () => void): Promise<void> {
  const before = provider.instructions.length;
  await eventually('the order is at the provider', 60_000, () => provider.instructions.length > before);
  breakOff();
  await provider.answer();
}

// The server answers a client of HTTP/1.1 that closes its connection: it may have closed only its half.
test('a typed call that its client breaks off is CANCELLED', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  await assertCancelled(opening, async () => {
    const { escrows } = await service.clients();
    const leaving = new AbortController();
    const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
    const call = assert.rejects(escrows.createEscrow(terms, { signal: leaving.signal }));
    await whileItIsOpened(() => leaving.abort());
    await call;
  });
});

test('a REST call whose client resets its connection is CANCELLED', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  await assertCancelled(opening, async () => {
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
