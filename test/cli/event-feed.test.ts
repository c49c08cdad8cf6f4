import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { eventPagesAfter, newestCursor, withinRate } from '../../src/cli/event-feed.ts';
import { createRestClient } from '../../src/client/rest.ts';
import { listenLocally } from '../support/local-server.ts';

/** A server that sends these responses in a row, and the last one for ever. */
async function openServer(
  t: TestContext,
  ...responses: readonly [status: number, body: string, delayS?: number | undefined][]
) {
  let calls = 0;
  const server = createServer((_, response) => {
    const [status, body, delayS] = responses[Math.min(calls, responses.length - 1)] ?? assert.fail();
    calls += 1;
    response.writeHead(status, delayS === undefined ? {} : { 'Retry-After': String(delayS) }).end(body);
  });
  const url = await listenLocally(t, server, () => server.closeAllConnections());
  const { send } = createRestClient(url, { apiKey: 'ak_sandbox_1', apiSecret: 'sk_sandbox_1' });
  return { send: withinRate(send), calls: () => calls };
}

test('a call above the rate is sent again, up to ten times', async (t) => {
  const { send, calls } = await openServer(t, [429, '', 0], [429, '', 0], [200, '{}']);
  assert.equal((await send('GET', '/')).status, 200);
  assert.equal(calls(), 3);
  const busy = await openServer(t, [429, 'busy', 0]);
  const response = await busy.send('GET', '/');
  assert.deepEqual([response.status, await response.text(), busy.calls()], [429, 'busy', 10]);
});

test('a call above the monthly quota, and any other error, is returned at once', async (t) => {
  for (const [status, delayS] of [
    [429, 86_400],
    [503, 1],
    [400, undefined],
  ] as const) {
    const { send, calls } = await openServer(t, [status, '', delayS]);
    assert.equal((await send('GET', '/')).status, status);
    assert.equal(calls(), 1);
  }
});

test('a page that is no response of Artseal is an error that names the address', async (t) => {
  const { send } = await openServer(t, [200, '<html>Sign in</html>'], [200, '{"status":"ok"}']);
  const expected =
    /^Error: http:\/\/127\.0\.0\.1:\d+ returned 200, but not as Artseal does: check ARTSEAL_URL$/;
  await assert.rejects(newestCursor(send), expected);
  await assert.rejects(eventPagesAfter(send, 0, assert.fail).next(), expected);
});
