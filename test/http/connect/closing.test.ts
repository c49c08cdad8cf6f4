import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Code } from '@connectrpc/connect';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { reconciliationLimits } from '../../../src/payments/reconciliation/limits.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { makeAuthority, trust } from '../../support/certificates.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openSocket, sendApart } from '../../support/raw-talk.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { errorOf, typedClients } from '../../support/typed-clients.ts';
import { closesByItself, drainTimeoutMs, endsByForce } from './closing-support.ts';
import { connectOverHttp1, type TransportMaker } from './transports.ts';

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const { certificateFile, keyFile } = authority.issue('listener');
const withTls = { ARTSEAL_INTERNAL_TLS_CERT: certificateFile, ARTSEAL_INTERNAL_TLS_KEY: keyFile };

const ways: readonly (readonly [name: string, transport: TransportMaker, env: Record<string, string>])[] = [
  ['HTTP/1.1', connectOverHttp1, {}],
  ['HTTP/2', createTypedTransport, {}],
  ['HTTP/1.1 and TLS', connectOverHttp1, withTls],
  ['HTTP/2 and TLS', createTypedTransport, withTls],
];

for (const [name, transport, env] of ways) {
  test(`closing rejects new calls, answers the call in progress and keeps its effect: ${name}`, async (t) => {
    const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
    const service = await startService(t, { provider, env });
    const token = await service.token();
    const { filings, escrows } = typedClients(transport(service.internalUrl, token));
    const { filingNo } = await filings.createFiling({ ...artwork, price: 1n });
    const call = escrows.createEscrow({
      ...{ ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n },
    });
    await provider.instructed('FREEZE');
    const closed = closesByItself(t, service);
    const later = typedClients(transport(service.internalUrl, token));
    assert.equal((await errorOf(later.filings.listFilings({}))).code, Code.Unavailable);
    await provider.answer();
    const { escrowId, state } = await call;
    assert.equal(state, Escrow_State.FROZEN);
    assert.ok(await closed);
    const again = await startService(t, { dataDir: service.dataDir });
    const order = await again.execute({ kind: 'GetEscrow', escrowId, owner: undefined });
    assert.equal(order?.state, 'FROZEN');
  });

  test(`connections that are idle, or whose call was rejected, do not delay closing: ${name}`, async (t) => {
    const service = await startService(t, { env });
    const token = await service.token();
    const clients = (text = token) => typedClients(transport(service.internalUrl, text)).filings;
    await clients().listFilings({});
    const filing = (length: number) => ({ ...artwork, price: 1n, condition: 'x'.repeat(length) });
    for (const length of [70_000, 2_000_000]) {
      const { code } = await errorOf(clients().createFiling(filing(length)));
      assert.equal(code, Code.ResourceExhausted);
    }
    const { code } = await errorOf(clients('it_unknown').createFiling(filing(60_000)));
    assert.equal(code, Code.Unauthenticated);
    assert.ok(await closesByItself(t, service));
  });
}

test('a call whose provider does not respond gets its response before connections are cut off', () => {
  assert.ok(reconciliationLimits.answerTimeoutMs < drainTimeoutMs);
});

/** A service with a connection that sent these chunks and nothing since. */
async function startWithSilence(
  t: TestContext,
  chunks: readonly string[],
  listener: 'internalUrl' | 'publicUrl' = 'internalUrl',
) {
  const service = await startService(t);
  const socket = await openSocket(service[listener]);
  await sendApart(socket, chunks);
  if (listener === 'publicUrl') await fetch(service.publicUrl);
  // The server accepts connections in order: once a later one is answered, it has accepted this one.
  const { filings } = typedClients(connectOverHttp1(service.internalUrl, 'it_any'));
  await errorOf(filings.listFilings({}));
  return { service, socket };
}

for (const [name, chunks] of Object.entries({
  nothing: [],
  'one byte of the preface': ['P'],
  'a whole request': ['GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  CONNECT: ['CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
})) {
  test(`a connection that sends ${name} does not delay closing`, async (t) => {
    const { service, socket } = await startWithSilence(t, chunks);
    assert.ok(await closesByItself(t, service, [socket]));
  });
}

test('nor does a connection of the public listener that sends nothing or CONNECT', async (t) => {
  for (const chunks of [[], ['CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n']]) {
    const { service, socket } = await startWithSilence(t, chunks, 'publicUrl');
    assert.ok(await closesByItself(t, service, [socket]), chunks.join());
  }
});

for (const [name, chunks] of Object.entries({
  'half a request': ['POST / HTTP/1.1\r\nHos'],
  'the preface alone': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
})) {
  test(`a client that sends ${name} and nothing more delays closing no longer than the timeout`, async (t) => {
    const { service, socket } = await startWithSilence(t, chunks);
    assert.ok(await endsByForce(t, service, [socket]));
  });
}

test('calls that take longer than the timeout are cut off, over every kind of connection', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  // No call gives up by itself, since this clock stands still.
  const service = await startService(t, { provider, clock: createManualClock() });
  const [token, platform] = [await service.token(), await service.platform()];
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const calls: Promise<unknown>[] = [openEscrow(service, platform, filingNo)];
  for (const transport of [connectOverHttp1, createTypedTransport]) {
    const { filings, escrows } = typedClients(transport(service.internalUrl, token));
    const filed = await filings.createFiling({ ...artwork, price: 1n });
    const terms = { ...escrowTerms(filed.filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
    calls.push(escrows.createEscrow(terms));
  }
  const cutOff = Promise.all(calls.map((call) => assert.rejects(call)));
  await eventually('all calls wait', 60_000, () => provider.instructions.length === calls.length);
  assert.ok(await endsByForce(t, service, [{ destroy: () => void provider.answer() }]));
  await cutOff;
});

test('the addresses are free once a service has closed, and after a start that failed', async (t) => {
  const service = await startService(t);
  const dataDir = temporaryFolder(t);
  const addresses = {
    ARTSEAL_PUBLIC_ADDR: service.publicAddress,
    ARTSEAL_INTERNAL_ADDR: service.internalAddress,
  };
  const { ARTSEAL_INTERNAL_ADDR } = addresses;
  await assert.rejects(startService(t, { dataDir, env: { ARTSEAL_INTERNAL_ADDR } }), /EADDRINUSE/);
  await service.close();
  const again = await startService(t, { dataDir, env: addresses });
  assert.equal(again.internalAddress, service.internalAddress);
});
