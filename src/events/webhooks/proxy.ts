import { once } from 'node:events';
import { request } from 'node:http';
import { isIP, connect as netConnect, type Socket } from 'node:net';
import { type SecureContext, connect as tlsConnect } from 'node:tls';
import { DeliveryError } from './delivery-error.ts';
import { hostOf } from './target.ts';

/** The longest head of a response of a proxy, in bytes. */
const headBytesMax = 16_384;

/**
 * Connects to `target`, an address and a port, through a forward proxy: http: or https:, with its user and password if it needs
 * them. Rejects with DeliveryError.
 */
export function connectThrough(
  proxy: URL,
  target: string,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const fail = (why: string) =>
    reject(new DeliveryError('the proxy of the server did not connect to it', why));
  request({
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...authorization(proxy) },
    createConnection: () => connectTo(proxy, secureContext),
    maxHeaderSize: headBytesMax,
    signal,
  })
    .on('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) return resolve(socket as Socket);
      socket.destroy();
      fail(`it answered ${statusCode} to CONNECT ${target}`);
    })
    .on('error', ({ message }) => fail(message))
    .end();
  return promise;
}

/**
 * Connects to a proxy and closes the connection at once. Rejects if the connection fails or the certificate is not valid, and
 * with the reason of the signal if it is aborted.
 */
export async function reachProxy(
  proxy: URL,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<void> {
  const socket = connectTo(proxy, secureContext);
  try {
    await once(socket, proxy.protocol === 'https:' ? 'secureConnect' : 'connect', { signal });
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    socket.destroy();
  }
}

function connectTo(proxy: URL, secureContext: SecureContext): Socket {
  const { protocol, port } = proxy;
  const host = hostOf(proxy);
  if (protocol === 'http:') return netConnect({ host, port: Number(port || 80) });
  const servername = isIP(host) === 0 ? host : '';
  return tlsConnect({ host, port: Number(port || 443), servername, secureContext, rejectUnauthorized: true });
}

function authorization({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const credentials = [username, password].map(decodeURIComponent).join(':');
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}
