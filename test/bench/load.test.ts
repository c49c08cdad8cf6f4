import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { endChildren } from '../../bench/children.ts';
import { startLoad } from '../../bench/generator.ts';

test('the time of a request at a fixed rate counts from when it is due, although none was free to send it', async (t) => {
  const stallMs = 200;
  const requests = 300;
  let received = 0;
  const server = createServer(async (_, response) => {
    received += 1;
    if (received === 1) await delay(stallMs);
    response.writeHead(200, { 'Content-Length': 2 }).end('{}');
  });
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(endChildren);
  const load = startLoad();
  const credentials = { keys: [{ apiKey: 'ak', apiSecret: 'sk' }], token: 'token' };
  const filed = { year: 2026, last: 1 };
  await load.prepare({ workload: 'provenance', requests, filed, credentials: [credentials] });
  const ports = { public: (server.address() as AddressInfo).port, internal: undefined };
  const target = { name: 'stalling', ports, credentials, lastWords: () => '' };
  const sent = await load.send(target, 'public', 1, 1_000);
  assert.equal(sent.requests, requests);
  assert.equal(received, requests);
  // The stall holds up the 200 requests that are due meanwhile, by 200 ms to 1 ms. Half of all wait for at least 50 ms.
  assert.ok(sent.p50Ms >= 45, `${sent.p50Ms} ms`);
  assert.ok(sent.p999Ms >= sent.p99Ms && sent.p99Ms >= 150, `${sent.p99Ms} ms`);
});
