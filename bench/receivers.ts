import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { respondToParent } from './children.ts';
import type { Arrivals, Ports, Request, Response } from './receiving.ts';

/** When each event first arrived at each receiver since the last `gather`. */
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

/** Starts a receiver on a port of its own. A dead one accepts requests and never responds. */
async function start(tls: { cert: string; key: string }, isDead: boolean): Promise<number> {
  const server = createServer(tls, (request, response) => {
    if (isDead) request.resume();
    // The service sends again what a broken connection lost; otherwise it is found missing.
    else receive(port, request, response).catch(() => {});
  });
  // The receiver closes no idle connection.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return port;
}

/** Resolves when `expected` events have arrived. */
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
}: Request & { kind: 'start' }): Promise<Ports> {
  const some = (receivers: number, isDead: boolean) =>
    Promise.all(Array.from({ length: receivers }, () => start({ cert, key }, isDead)));
  return { healthy: await some(healthy, false), dead: await some(dead, true) };
}

async function respond(request: Request): Promise<Response> {
  return request.kind === 'start'
    ? { ports: await startAll(request) }
    : { arrivals: await gather(request.expected) };
}

respondToParent(respond);
