import { constants } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import type { ClientOf } from './clients.ts';
import type { TlsMaterial } from './tls-files.ts';

/** How long a client may take over its handshake, in milliseconds. */
const handshakeMs = 10_000;

/** Mozilla's intermediate list without finite-field DHE: forward secrecy and authenticated encryption. */
const ciphers = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');

/** The options of a TLS front. */
export interface TlsFrontOptions {
  readonly material: TlsMaterial;
  /** ALPN protocols, the preferred one first. */
  readonly protocols: readonly string[];
  readonly clientOf: ClientOf;
  readonly log: Logger;
  /** For tests; the default is 10 s. */
  readonly handshakeMs?: number;
}

/** See `createTlsFront`. */
export type TlsFront = ReturnType<typeof createTlsFront>;

/**
 * Does the TLS handshakes of a listener, TLS 1.2 and 1.3. A failed handshake is logged in one line, which holds nothing that the
 * peer sent.
 */
export function createTlsFront(options: TlsFrontOptions) {
  const { material, protocols, clientOf, log } = options;
  const handshakes = new Map<Socket, (secure: TLSSocket) => void>();
  const server = createServer({
    ...contextOf(material),
    ALPNProtocols: [...protocols],
    requestCert: material.clientCa !== undefined,
    rejectUnauthorized: true,
    handshakeTimeout: options.handshakeMs ?? handshakeMs,
  });
  server.on('secureConnection', (secure: TLSSocket) => {
    const socket = carrierOf(secure);
    const onSecure = handshakes.get(socket);
    handshakes.delete(socket);
    onSecure?.(secure);
  });
  server.on('tlsClientError', (error: NodeJS.ErrnoException, secure: TLSSocket) => {
    // Node keeps a connection open whose handshake has timed out.
    secure.destroy();
    const code = String(secure.authorizationError ?? error.code);
    // Load balancers check a port by connecting without a handshake.
    const level = code === 'ECONNRESET' ? 'debug' : 'info';
    log[level]({ client: clientOf(carrierOf(secure), {}), code }, 'a TLS handshake failed');
  });
  return {
    /** Does the handshake of an accepted connection. Calls back with the secure socket; never if the handshake fails. */
    handshake: (socket: Socket, onSecure: (secure: TLSSocket) => void): void => {
      // Remembers the address, which a socket loses when it closes.
      clientOf(socket, {});
      handshakes.set(socket, onSecure);
      socket.once('close', () => handshakes.delete(socket));
      server.emit('connection', socket);
    },
    /** Uses another certificate for new connections. Throws if OpenSSL rejects it. */
    use: (renewed: TlsMaterial): void => server.setSecureContext(contextOf(renewed)),
    /** Closes the connections that are in a handshake. */
    endHandshakes: (): void => {
      for (const socket of handshakes.keys()) socket.destroy();
    },
  };
}

/** Makes a server do the handshake of each connection first. Call it after all `connection` listeners were added. */
export function handshakeFirst(server: Server, front: TlsFront): void {
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
    // Denial of service: a client could renegotiate again and again.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
  } as const;
}

/** The TCP socket of a TLS socket. Node's types lack `_parent`. */
function carrierOf(secure: TLSSocket): Socket {
  return (secure as TLSSocket & { readonly _parent: Socket })._parent;
}
