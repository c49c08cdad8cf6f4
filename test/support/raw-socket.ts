import { connect, type Socket } from 'node:net';

/** Sends bytes over a connection of their own and collects what comes back until the peer closes or falls silent. */
export async function exchange(
  baseUrl: string,
  bytes: string | Uint8Array,
  { silentMs = 1_000, end = false } = {},
): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  const socket: Socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const { promise, resolve } = Promise.withResolvers<void>();
  let received = '';
  socket.setTimeout(silentMs, resolve);
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket
    .on('end', resolve)
    .on('close', () => resolve())
    .on('error', () => resolve());
  socket.write(bytes);
  if (end) socket.end();
  await promise;
  socket.destroy();
  return received;
}
