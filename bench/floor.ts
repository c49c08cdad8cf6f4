import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openRegistry } from './yardstick.ts';

// The floor: the promises of a signed call, kept by hand-written code and nothing else. Calls of one turn of the event
// loop share a commit, and answers leave after it.

const [, , dataDir = '.'] = process.argv;
const registry = openRegistry(dataDir);
const begin = registry.sqlite.prepare('BEGIN IMMEDIATE');
const commit = registry.sqlite.prepare('COMMIT');

/** Answers that wait for the commit of their turn of the event loop. */
let waiting: { response: ServerResponse; status: number; body: string }[] = [];

function answer(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  if (waiting.length === 0) {
    begin.run();
    setImmediate(settle);
  }
  const { status, value } = carryOut(request, body);
  waiting.push({ response, status, body: JSON.stringify(value) });
}

function settle(): void {
  const settled = waiting;
  waiting = [];
  commit.run();
  for (const { response, status, body } of settled) {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(status, headers).end(body);
  }
}

function carryOut(request: IncomingMessage, body: Buffer): { status: number; value: object } {
  const { method = '', url = '', headers } = request;
  const platform = registry.authenticate(headers, { method, url, body });
  if (platform === undefined) return { status: 401, value: {} };
  const nowS = Math.floor(Date.now() / 1000);
  const refused = registry.admit(platform, String(headers['x-nonce']), nowS);
  if (refused !== undefined) return { status: refused, value: {} };
  const value =
    method === 'POST'
      ? registry.file(JSON.parse(body.toString()), platform, nowS)
      : registry.provenance(url.slice(url.lastIndexOf('/') + 1));
  return { status: value === undefined ? 404 : 200, value: value ?? {} };
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () =>
    answer(request, chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks), response),
  );
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`floor ready public=http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
process.once('SIGTERM', () => {
  registry.sqlite.close();
  process.exit(0);
});
