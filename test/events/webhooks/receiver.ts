import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { LookUp } from '../../../src/events/webhooks/connect.ts';
import type { OutgoingRequest } from '../../../src/events/webhooks/outgoing.ts';
import {
  createOutgoing,
  type Outgoing,
  type OutgoingDependencies,
  type OutgoingResult,
} from '../../../src/events/webhooks/outgoing.ts';
import { type Network, parseNetwork } from '../../../src/lib/networks.ts';
import { type Certificate, makeAuthority } from '../../support/certificates.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';

type Scope = Pick<TestContext, 'after'>;

/** The authority of receivers, and a certificate of hooks.example and the names and addresses of loopback. */
export const authority = makeAuthority(fileScope);
export const certificate = authority.issue('receiver', 2, [
  ...['hooks.example', 'localhost', 'any.localhost'],
  ...['127.0.0.1', '0.0.0.0', '::ffff:7f00:1', '127.0.0.2'],
]);

/** Settings with which endpoints may be on this machine. */
export const localEndpoints = {
  ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.0/8',
  ARTSEAL_WEBHOOK_CA: authority.certificateFile,
};

/** A server. */
export type Receiver = Awaited<ReturnType<typeof startServer>>;

/** Where a server listens: by default at any port of 127.0.0.1. */
interface ListenAddress {
  readonly host?: string;
  readonly port?: number;
}

/** Makes a server listen until the end of the test. */
export async function startServer(
  test: Scope,
  server: Server,
  { host = '127.0.0.1', port = 0 }: ListenAddress = {},
) {
  const sockets = new Set<Socket>();
  let [connections, receivedBytes] = [0, 0];
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(socket);
        receivedBytes += socket.bytesRead;
      });
  });
  server.listen(port, host);
  await once(server, 'listening');
  test.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port,
    /** The connections that it holds. */
    sockets: sockets as ReadonlySet<Socket>,
    /** How many connections were made to it. */
    connections: () => connections,
    /** How many bytes arrived over connections that have ended. */
    receivedBytes: () => receivedBytes,
  };
}

/** Starts a receiver over https; by default it answers 204 to everything. */
export function startReceiver(
  test: Scope,
  listener: RequestListener = (_request, response) => response.writeHead(204).end(),
  {
    certificate: cert,
    key,
    ...address
  }: Partial<Pick<Certificate, 'certificate' | 'key'>> & ListenAddress = {},
): Promise<Receiver> {
  const shown = { cert: cert ?? certificate.certificate, key: key ?? certificate.key };
  return startServer(test, createServer(shown, listener), address);
}

/** Starts a receiver that speaks TLS, and calls `talk` when a request has come. */
export function startTalker(test: Scope, talk: (socket: TLSSocket) => void): Promise<Receiver> {
  const { certificate: cert, key } = certificate;
  return startServer(
    test,
    createTlsServer({ cert, key }, (socket) => {
      socket.on('error', () => {}).once('data', () => talk(socket));
    }),
  );
}

/** The networks that receivers of tests are in. */
export const loopback = networksOf('127.0.0.0/8', '0.0.0.0/8', '::1', '::');

export function networksOf(...texts: readonly string[]): readonly Network[] {
  return texts.map((text) => parseNetwork(text) as Network);
}

/** Sends to loopback with a clock that stands still, and trusts the authority of receivers; closed when the test is over. */
export function openOutgoing(test: Scope, options: Partial<OutgoingDependencies> = {}): Outgoing {
  const outgoing = createOutgoing({
    clock: createManualClock(),
    networks: loopback,
    plainLoopback: false,
    proxy: undefined,
    authorities: authority.certificate,
    ...options,
  });
  test.after(() => outgoing.close());
  return outgoing;
}

/**
 * Shared by tests that need no settings or clock of their own: opening one reads all certificate authorities of Node. It is not
 * closed, because the test files of a process share it. The receivers end its connections.
 */
export const sharedOutgoing = openOutgoing({ after: () => {} });

/** Posts something small. */
export function post(
  outgoing: Outgoing,
  url: string,
  more: Partial<OutgoingRequest> = {},
): Promise<OutgoingResult> {
  const { signal } = new AbortController();
  return outgoing.post({ url, headers: {}, body: '{}', signal, ...more });
}

/** Returns the status of a response, or why there is none. */
export async function outcome(result: Promise<OutgoingResult>): Promise<number | string> {
  const settled = await result;
  return settled.kind === 'ANSWERED' ? settled.status : settled.why;
}

/** The outcome of a small post to a receiver on this machine. */
export const outcomeAt = (port: number, outgoing = sharedOutgoing): Promise<number | string> =>
  outcome(post(outgoing, `https://localhost:${port}/`));

/** Finds the same addresses for every name. */
export function finding(...addresses: readonly string[]): LookUp {
  return async () => addresses;
}
