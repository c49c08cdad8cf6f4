import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** Opens a connection to a service, with TLS to an https URL. */
export async function openSocket(baseUrl: string, tls: ConnectionOptions = {}): Promise<Socket> {
  const { protocol, hostname, port } = new URL(baseUrl);
  const peer = { host: hostname, port: Number(port), allowHalfOpen: true };
  const isSecure = protocol === 'https:';
  const socket = isSecure ? connectTls({ ...peer, ...tls }) : connect(peer);
  socket.setNoDelay(true);
  await once(socket, isSecure ? 'secureConnect' : 'connect');
  // A reset ends the connection too.
  socket.on('error', () => {});
  return socket;
}

/** Sends each chunk in a packet of its own. */
export async function sendApart(socket: Socket, chunks: readonly (string | Uint8Array)[]): Promise<void> {
  for (const chunk of chunks) {
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.write(chunk, () => setImmediate(resolve));
    await promise;
  }
}

/** Returns all that is received until the peer ends the connection. */
export async function allReceived(socket: Socket): Promise<string> {
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on('end', resolve).on('close', () => resolve());
  if (socket.readableEnded || socket.destroyed) resolve();
  await promise;
  return received;
}
