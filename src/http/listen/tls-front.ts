import { constants } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import type { ClientOf } from './clients.ts';
import type { TlsMaterial } from './tls-files.ts';

/** How long a client may take over its handshake, in milliseconds. */
const handshakeMs = 10_000;

/** Those with forward secrecy and authenticated encryption: what Mozilla calls intermediate, without finite-field DHE. */
const ciphers = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');

/** What a TLS front works with. */
export interface TlsFrontOptions {
  readonly material: TlsMaterial;
  /** The protocols that the door speaks, the one that it prefers first (ALPN). */
  readonly protocols: readonly string[];
  readonly clientOf: ClientOf;
  readonly log: Logger;
  /** How long a client may take over its handshake, in milliseconds; tests wait less. */
  readonly handshakeMs?: number;
}

/** What stands before a door that speaks TLS. */
export interface TlsFront {
  /** Shakes hands over a connection that was accepted, and calls back with what goes on over it; never if that fails. */
  handshake(socket: Socket, onSecure: (secure: TLSSocket) => void): void;
  /** Uses another certificate from now on; connections that are open keep theirs. Throws if OpenSSL does not take it. */
  use(material: TlsMaterial): void;
  /** Ends the connections whose handshakes are not done. */
  endHandshakes(): void;
}

/** TLS 1.2 and 1.3. A handshake that fails leaves one line in the log, without a byte of the peer's. */
export function createTlsFront(options: TlsFrontOptions): TlsFront {
  const { material, protocols, clientOf, log } = options;
  const shaking = new Map<Socket, (secure: TLSSocket) => void>();
  const server = createServer({
    ...contextOf(material),
    ALPNProtocols: [...protocols],
    requestCert: material.clientCa !== undefined,
    rejectUnauthorized: true,
    handshakeTimeout: options.handshakeMs ?? handshakeMs,
  });
  server.on('secureConnection', (secure: TLSSocket) => {
    const socket = carrierOf(secure);
    const onSecure = shaking.get(socket);
    shaking.delete(socket);
    onSecure?.(secure);
  });
  server.on('tlsClientError', (error: NodeJS.ErrnoException, secure: TLSSocket) => {
    // Without this one that has run out of time would stay.
    secure.destroy();
    const code = String(secure.authorizationError ?? error.code);
    // Whoever only looks whether the port is open, as load balancers do, goes without a handshake.
    const level = code === 'ECONNRESET' ? 'debug' : 'info';
    log[level]({ client: clientOf(carrierOf(secure), {}), code }, 'a TLS handshake failed');
  });
  return {
    handshake: (socket, onSecure) => {
      // Whoever is gone by the time that it is logged has no address any more.
      clientOf(socket, {});
      shaking.set(socket, onSecure);
      socket.once('close', () => shaking.delete(socket));
      server.emit('connection', socket);
    },
    use: (renewed) => server.setSecureContext(contextOf(renewed)),
    endHandshakes: () => {
      for (const socket of shaking.keys()) socket.destroy();
    },
  };
}

/** Has a server go on with its connections, behind all that listens for them so far, once their handshakes are done. */
export function shakeHandsFirst(server: Server, front: TlsFront): void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) =>
    front.handshake(socket, (secure) => {
      for (const listener of listeners) listener.call(server, secure);
    }),
  );
}

function contextOf({ certificate, key, clientCa }: TlsMaterial) {
  return {
    ...{ cert: certificate, key, ciphers },
    minVersion: 'TLSv1.2',
    honorCipherOrder: true,
    // A peer could have them negotiated again and again over one connection.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
  } as const;
}

/** The connection under TLS; not in Node's types, though its own timers rely on it. */
function carrierOf(secure: TLSSocket): Socket {
  return (secure as TLSSocket & { readonly _parent: Socket })._parent;
}
