import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openWithoutOperations } from './bare-listener.ts';

setFlagsFromString('--expose-gc');
const collect: NodeJS.GCFunction = runInNewContext('gc');

/** Collects the young heap twice, after which all that is still in use is in the old heap. Returns the bytes of that. */
function oldHeapBytes(): number {
  for (let nth = 0; nth < 2; nth += 1) collect({ type: 'minor' });
  const old = getHeapSpaceStatistics().filter(({ space_name }) => !space_name.startsWith('new_'));
  return old.reduce((bytes, { space_used_size }) => bytes + space_used_size, 0);
}

// Slow tests have a process each: the memory of other tests would be counted, too.
test('collecting the young heap frees the request of a typed call that is over', async (t) => {
  const { baseUrl, server } = await openWithoutOperations(t);
  const ballast = 10_000;
  server.prependListener('request', (request) => {
    Object.assign(request, { ballast: new Array(ballast).fill(0) });
  });
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1');
  t.after(() => socket.destroy());
  const head = 'POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json';
  async function call(): Promise<void> {
    const closed = once(server, 'request').then(([, response]) => once(response, 'close'));
    socket.write(`${head}\r\nContent-Length: 2\r\n\r\n{}`);
    assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 200 /);
    await closed;
    await setImmediate();
  }

  await call();
  const before = oldHeapBytes();
  const calls = 100;
  for (let nth = 1; nth <= calls; nth += 1) {
    await call();
    // Not after each call: the connection keeps its last request.
    if (nth % 20 === 0) oldHeapBytes();
  }
  // An element takes 8 bytes.
  const kept = (oldHeapBytes() - before) / (ballast * 8);
  assert.ok(kept < calls / 2, `The memory of ${Math.round(kept)} of ${calls} requests is still in use.`);
});
