import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Arrivals, Asked, Ports, Told } from './receiving.ts';

/** When each event came first to each receiver, since it was last asked. */
let arrivals: Arrivals = {};
let count = 0;
let counted = () => {};

async function receive(port: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  const atMs = performance.timeOrigin + performance.now();
  response.writeHead(204).end();
  const { filingNo } = JSON.parse(body).data;
  const own = arrivals[port] ?? {};
  arrivals[port] = own;
  if (own[filingNo] !== undefined) return;
  own[filingNo] = atMs;
  count += 1;
  counted();
}

/** Starts a receiver at a port of its own; one that is dead takes requests and never answers. */
async function start(tls: { cert: string; key: string }, isDead: boolean): Promise<number> {
  const server = createServer(tls, (request, response) => {
    if (isDead) request.resume();
    // What a broken connection took along is sent again, or is found missing.
    else receive(port, request, response).catch(() => {});
  });
  // No connection ends by itself while it might be used again.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return port;
}

/** Waits until so many have come. */
async function gather(expected: number): Promise<Arrivals> {
  const { promise, resolve } = Promise.withResolvers<void>();
  counted = () => {
    if (count >= expected) resolve();
  };
  counted();
  await promise;
  const gathered = arrivals;
  [arrivals, count, counted] = [{}, 0, () => {}];
  return gathered;
}

async function startAll({
  certificate: cert,
  key,
  healthy,
  dead,
}: Asked & { kind: 'start' }): Promise<Ports> {
  const some = (receivers: number, isDead: boolean) =>
    Promise.all(Array.from({ length: receivers }, () => start({ cert, key }, isDead)));
  return { healthy: await some(healthy, false), dead: await some(dead, true) };
}

async function carryOut(asked: Asked): Promise<Told> {
  return asked.kind === 'start'
    ? { ports: await startAll(asked) }
    : { arrivals: await gather(asked.expected) };
}

process.on('message', (asked: Asked) => {
  carryOut(asked).then(
    (told) => process.send?.(told),
    (error) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
  );
});
process.once('disconnect', () => process.exit());
