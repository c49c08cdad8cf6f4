import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectPlain } from 'node:net';
import { test } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { createClient, type Transport } from '@connectrpc/connect';
import { createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../../gen/health/v1/health_pb.ts';
import { type ClientTls, createTypedTransport } from '../../../src/client/typed.ts';
import { frontOf, makeAuthority } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { holdsNone } from '../../support/local-server.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { bearer, errorOf, sending, typedClients, typedError } from '../../support/typed-clients.ts';
import { openBareListener } from './bare-listener.ts';

const limitMs = 60_000;
const authority = makeAuthority(fileScope);
const clientAuthority = makeAuthority(fileScope);
const listener = authority.issue('listener');
const internal = clientAuthority.issue('internal-system');
const stranger = makeAuthority(fileScope).issue('stranger');

const service = await startService(fileScope, {
  env: {
    ARTSEAL_INTERNAL_TLS_CERT: listener.certificateFile,
    ARTSEAL_INTERNAL_TLS_KEY: listener.keyFile,
    ARTSEAL_INTERNAL_TLS_CLIENT_CA: clientAuthority.certificateFile,
  },
});
const { internalUrl } = service;
const token = await service.token();

type Maker = (tls: ClientTls, token: string) => Transport;

const ca = authority.certificate;
const known: ClientTls = { ca, cert: internal.certificate, key: internal.key };
/** One protocol for each HTTP version. */
const makers: Record<string, Maker> = {
  'the client of the package': (tls, its) => createTypedTransport(internalUrl, its, tls),
  'gRPC-Web over HTTP/1.1': (nodeOptions, its) =>
    createGrpcWebTransport({
      ...{ baseUrl: internalUrl, httpVersion: '1.1', nodeOptions },
      interceptors: [sending(bearer(its))],
    }),
};

for (const [name, make] of Object.entries(makers)) {
  test(`a client with a certificate of the authority and a token is served: ${name}`, async () => {
    const { filings } = typedClients(make(known, token));
    const { filingNo } = await filings.createFiling({ ...artwork, price: 1n });
    assert.equal((await filings.getFiling({ filingNo })).filing?.filingNo, filingNo);
  });

  test(`a client with only the certificate is rejected: ${name}`, async () => {
    await typedError(typedClients(make(known, 'it_any')).filings.listFilings({}), 'AUTH_HEADER_INVALID');
  });

  test(`a client with only the token, or a certificate of another authority, gets no response: ${name}`, async () => {
    const before = service.logLines.length;
    for (const tls of [{ ca }, { ca, cert: stranger.certificate, key: stranger.key }]) {
      const error = await errorOf(typedClients(make(tls, token)).filings.listFilings({}));
      assert.deepEqual(error.details, []);
    }
    await eventually('both are logged', limitMs, () => service.logLines.length >= before + 2);
    const lines = service.logLines.slice(before).map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ client, listener, code, msg }) => ({ client, listener, code, msg })),
      ['ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'].map((code) => ({
        ...{ client: '127.0.0.1', listener: 'internal', code, msg: 'a TLS handshake failed' },
      })),
    );
  });
}

test('health needs a certificate, but no token', async () => {
  const check = (nodeOptions: ClientTls) =>
    createClient(Health, createGrpcTransport({ baseUrl: internalUrl, nodeOptions })).check({});
  assert.equal((await check(known)).status, Status.SERVING);
  await assert.rejects(check({ ca }));
});

/** The protocol that ALPN selects for a client. */
async function negotiated(ALPNProtocols?: string[]): Promise<string | false | null> {
  const { hostname: host, port } = new URL(internalUrl);
  const options: ConnectionOptions = { host, port: Number(port), ...known };
  const socket = connect(ALPNProtocols === undefined ? options : { ...options, ALPNProtocols });
  try {
    await once(socket, 'secureConnect');
    return socket.alpnProtocol;
  } finally {
    socket.destroy();
  }
}

test('ALPN selects HTTP/2 if the client has it, else HTTP/1.1', async () => {
  assert.equal(await negotiated(['http/1.1', 'h2']), 'h2');
  assert.equal(await negotiated(['http/1.1']), 'http/1.1');
  assert.equal(await negotiated(), false);
  await assert.rejects(negotiated(['spdy/3']), /alert/);
});

/** Short timeouts for connections without a token. */
const impatient = () => ({
  unauthenticatedMs: 200,
  tls: frontOf(listener, { protocols: ['h2', 'http/1.1'] }),
});

test('a connection without a token is closed, even before its handshake', async (t) => {
  const { server, baseUrl } = await openBareListener(t, () => assert.fail('it is called'), impatient());
  const { hostname: host, port } = new URL(baseUrl);
  const session = connectHttp2(baseUrl, { ca });
  const pinging = setInterval(() => session.destroyed || session.ping(() => {}), 20);
  t.after(() => clearInterval(pinging));
  const sockets = [
    connectPlain({ host, port: Number(port) }),
    connect({ host, port: Number(port), ca, ALPNProtocols: ['http/1.1'] }),
  ];
  await Promise.all([once(session, 'connect'), ...sockets.map((socket) => once(socket, 'connect'))]);
  await holdsNone(server, limitMs);
});
