import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Code } from '@connectrpc/connect';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { makeAuthority, trust } from '../../support/certificates.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openSocket, sendApart } from '../../support/raw-talk.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { errorOf, typedClients } from '../../support/typed-clients.ts';
import { closingOf, endsByForce } from './closing-support.ts';
import { connectOverHttp1, type TransportMaker, transports } from './transports.ts';

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const { certificateFile, keyFile } = authority.issue('door');
const withTls = { ARTSEAL_INTERNAL_TLS_CERT: certificateFile, ARTSEAL_INTERNAL_TLS_KEY: keyFile };

/** How an internal system calls. */
interface Way {
  readonly name: string;
  readonly transport: TransportMaker;
  /** Settings of the service. */
  readonly env: Record<string, string>;
}

const ways: readonly Way[] = [
  ...Object.entries(transports).map(([name, transport]) => ({ name, transport, env: {} })),
  { name: 'Connect over HTTP/1.1 and TLS', transport: connectOverHttp1, env: withTls },
  { name: 'Connect over HTTP/2 and TLS', transport: createTypedTransport, env: withTls },
];

/** A service with a call that waits for the provider. */
async function startWithCallInFlight(t: TestContext, { transport, env }: Way) {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const service = await startService(t, { provider, env });
  const { filings, escrows } = typedClients(transport(service.internalUrl, await service.token()));
  const { filingNo } = await filings.createFiling({ ...artwork, price: 1n });
  const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
  const call = escrows.createEscrow(terms);
  await provider.instructed('FREEZE');
  return { service, provider, call, filings };
}

for (const way of ways) {
  const { name, transport, env } = way;

  test(`closing answers the call in flight, and its effect is kept: ${name}`, async (t) => {
    const { service, provider, call } = await startWithCallInFlight(t, way);
    const closed = closingOf(t, service);
    await provider.answer();
    const { escrowId, state } = await call;
    assert.equal(state, Escrow_State.FROZEN);
    await closed;
    const again = await startService(t, { dataDir: service.dataDir });
    const order = await again.execute({ kind: 'GetEscrow', escrowId, owner: undefined });
    assert.equal(order?.state, 'FROZEN');
  });

  test(`a connection whose call was answered does not hold up closing: ${name}`, async (t) => {
    const { service, provider, call } = await startWithCallInFlight(t, way);
    const closed = closingOf(t, service);
    await provider.answer();
    await call;
    assert.equal(await closed, 'by itself');
  });

  test(`what closes takes no more connections: ${name}`, async (t) => {
    const { service, provider, call } = await startWithCallInFlight(t, way);
    const { filings } = typedClients(transport(service.internalUrl, await service.token()));
    const closed = closingOf(t, service);
    assert.equal((await errorOf(filings.listFilings({}))).code, Code.Unavailable);
    await provider.answer();
    await Promise.all([call, closed]);
  });

  test(`connections that are idle do not hold up closing: ${name}`, async (t) => {
    const service = await startService(t, { env });
    const { filings } = typedClients(transport(service.internalUrl, await service.token()));
    await filings.listFilings({});
    assert.equal(await closingOf(t, service), 'by itself');
  });

  for (const length of [70_000, 2_000_000]) {
    test(`a message of ${length} bytes, refused for its size, does not hold up closing: ${name}`, async (t) => {
      const service = await startService(t, { env });
      const { filings } = typedClients(transport(service.internalUrl, await service.token()));
      const large = { ...artwork, price: 1n, condition: 'x'.repeat(length) };
      assert.equal((await errorOf(filings.createFiling(large))).code, Code.ResourceExhausted);
      assert.equal(await closingOf(t, service), 'by itself');
    });
  }

  test(`a caller that was refused does not hold up closing: ${name}`, async (t) => {
    const service = await startService(t, { env });
    const { filings } = typedClients(transport(service.internalUrl, 'it_unknown'));
    await errorOf(filings.createFiling({ ...artwork, price: 1n, condition: 'x'.repeat(60_000) }));
    assert.equal(await closingOf(t, service), 'by itself');
  });
}

/** A service with a connection that sent these packets and then fell silent. */
async function startWithSilence(t: TestContext, chunks: readonly string[]) {
  const service = await startService(t);
  const socket = await openSocket(service.internalUrl);
  await sendApart(socket, chunks);
  // Once another one is answered, this one has been taken.
  const { filings } = typedClients(connectOverHttp1(service.internalUrl, 'it_any'));
  await errorOf(filings.listFilings({}));
  return { service, socket };
}

for (const [name, chunks] of Object.entries({ nothing: [], 'one byte of the preface': ['P'] })) {
  test(`a connection that sends ${name} does not hold up closing`, async (t) => {
    const { service, socket } = await startWithSilence(t, chunks);
    assert.equal(await closingOf(t, service, [socket]), 'by itself');
  });
}

for (const [name, chunks] of Object.entries({
  'half a request': ['POST / HTTP/1.1\r\nHos'],
  'the preface alone': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
})) {
  test(`a client that sends ${name} and never answers again is not waited for without end`, async (t) => {
    const { service, socket } = await startWithSilence(t, chunks);
    assert.ok(await endsByForce(t, service, [socket]));
  });
}

test('the addresses are free once a service has closed', async (t) => {
  const service = await startService(t);
  await service.close();
  const env = {
    ARTSEAL_PUBLIC_ADDR: service.publicAddress,
    ARTSEAL_INTERNAL_ADDR: service.internalAddress,
  };
  const again = await startService(t, { env });
  assert.equal(again.internalAddress, service.internalAddress);
});

test('a service that cannot listen lets go of what it has', async (t) => {
  const service = await startService(t);
  const dataDir = temporaryFolder(t);
  const env = { ARTSEAL_INTERNAL_ADDR: service.internalAddress };
  await assert.rejects(startService(t, { dataDir, env }), /EADDRINUSE/);
  await startService(t, { dataDir });
});
