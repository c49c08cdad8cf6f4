import { constants } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { Clock } from '../../domain/clock.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { refuseChangeableByOthers } from '../../lib/file-access.ts';
import type { Logger } from '../../lib/log.ts';
import type { ClientOf } from '../../lib/networks.ts';
import {
  type CertificateAge,
  certificateAge,
  pathsOf,
  readTlsFiles,
  type TlsFiles,
  type TlsMaterial,
} from './tls-files.ts';

/** How often the files are checked, in milliseconds. */
const checkEveryMs = 2_000;

type ListenerName = 'public' | 'internal';

/** See `openTlsListeners`. */
export type TlsListeners = ReturnType<typeof openTlsListeners>;

/**
 * Reads the TLS files of each listener that has some, and watches them for changes. Throws TlsFileError, and the error of
 * OpenSSL for a weak key.
 */
export function openTlsListeners(
  filesOf: Readonly<Record<ListenerName, TlsFiles | undefined>>,
  { clientOf, clock, log }: { readonly clientOf: ClientOf; readonly clock: Clock; readonly log: Logger },
) {
  const watches = new Map<ListenerName, CertificateWatch>();
  function open(listener: ListenerName, protocols: readonly string[]): TlsFront | undefined {
    const files = filesOf[listener];
    if (files === undefined) return undefined;
    const material = readTlsFiles(files);
    const front = createTlsFront({ listener, material, protocols, clientOf, log });
    watches.set(listener, watchCertificate(files, { listener, material, front, clock, log }));
    return front;
  }
  return {
    /** Undefined for plain HTTP. */
    public: open('public', ['http/1.1']),
    internal: open('internal', ['h2', 'http/1.1']),
    /** When the current certificates expire, in Unix milliseconds. */
    ends: (): ReadonlyMap<ListenerName, number> =>
      new Map(Array.from(watches, ([listener, { endsAtMs }]) => [listener, endsAtMs()])),
    /**
     * Reads all files now, changed or not. Returns what each listener with TLS uses from now on, and the `failure` of files that
     * cannot be used, so that the certificate from before stays; undefined if it was reloaded.
     */
    reload: () =>
      Array.from(watches, ([listener, { reload, endsAtMs }]) => {
        const failure = reload();
        return { listener, endsAtMs: endsAtMs(), failure };
      }),
    /** Stops watching the files. */
    end: (): void => {
      for (const { end } of watches.values()) end();
    },
  };
}

type CertificateWatch = ReturnType<typeof watchCertificate>;

/**
 * Checks the files of a certificate every two seconds, links included, and uses them when they have changed. If they cannot be
 * used, it logs an error once and keeps the current certificate. It also logs, once each, that a certificate expires soon and
 * that it has expired.
 */
function watchCertificate(
  files: TlsFiles,
  options: {
    readonly listener: ListenerName;
    readonly material: TlsMaterial;
    readonly front: TlsFront;
    readonly clock: Clock;
    readonly log: Logger;
  },
) {
  const { listener, front, clock, log } = options;
  let current = options.material;
  let seen = stateOf(files);
  let tried = seen;
  let loggedAge: CertificateAge | undefined;
  let cancel = () => {};

  /** Returns why the files cannot be used; undefined if they are used. */
  function reload(): string | undefined {
    tried = stateOf(files);
    try {
      refuseChangeableByOthers(pathsOf(files));
      const material = readTlsFiles(files);
      front.use(material);
      current = material;
      loggedAge = undefined;
      log.info({ listener, endsAt: utcTimestamp(current.endsAtMs) }, 'the certificate was reloaded');
      return undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ listener, why, ...files }, 'the new certificate cannot be used: the current one is kept');
      return why;
    }
  }

  function logAge(): void {
    const age = certificateAge(current, clock.nowMs());
    if (age === loggedAge) return;
    loggedAge = age;
    const endsAt = utcTimestamp(current.endsAtMs);
    if (age === 'EXPIRES_SOON') log.warn({ listener, endsAt }, 'the certificate expires soon: renew it');
    if (age === 'EXPIRED') log.error({ listener, endsAt }, 'the certificate has expired: clients reject it');
  }

  function check(): void {
    const state = stateOf(files);
    // Certificate and key are written one after the other, so wait until nothing changes any more.
    if (state === seen && state !== tried) reload();
    seen = state;
    logAge();
    cancel = clock.after(checkEveryMs, check);
  }

  check();
  return { endsAtMs: () => current.endsAtMs, reload, end: () => cancel() };
}

/** A text that changes whenever one of the files does. */
function stateOf(files: TlsFiles): string {
  return pathsOf(files).map(stateOfFile).join(' ');
}

function stateOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return [dev, ino, size, mtimeMs, ctimeMs].join();
  } catch (error) {
    // The file is missing or its folder is closed: reading it reports that.
    return String(error);
  }
}

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
  readonly listener: ListenerName;
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
  const { listener, material, protocols, clientOf, log } = options;
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
    log[level]({ listener, client: clientOf(carrierOf(secure), {}), code }, 'a TLS handshake failed');
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
