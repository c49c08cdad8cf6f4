import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce } from '../../support/signed-request.ts';

const clock = createManualClock(Date.UTC(2026, 5, 10, 12));
const service = await startService(fileScope, { clock });
const platform = await service.platform();

const nowS = () => Math.floor(clock.nowMs() / 1_000);
/** A timestamp that differs from the server's clock. */
const stamp = (differenceS = 0) => String(nowS() + differenceS);
const file = (options: { nonce?: string; timestamp?: string } = {}, by = platform) =>
  fileArtwork(service, by, { timestamp: stamp(), ...options });

/** test/api/authentication.test.ts has all cases, and order-of-checks.test.ts what a rejected call leaves. */
test("a timestamp that is 301 s old is rejected with the server's clock", async () => {
  const answer = await file({ timestamp: stamp(-301) });
  assertRejected(answer, 401, 'TIMESTAMP_EXPIRED', /X-Timestamp/, /300 seconds/);
  assert.equal(answer.headers['x-server-time'], String(nowS()));
});

test('a used nonce is rejected with another timestamp, body and route, too', async () => {
  const nonce = newNonce();
  assert.equal((await file({ nonce })).status, 200);
  clock.advance(1_000);
  assertRejected(await file({ nonce }), 401, 'NONCE_REUSED');
  assertRejected(
    await askProvenance(service, platform, 'x', { nonce, timestamp: stamp() }),
    401,
    'NONCE_REUSED',
  );
});

/** test/store/promises/admission.ts has concurrent claims, clocks that jump, and how long nonces are kept. */
test('a request dated 300 s ahead is never accepted twice while its timestamp is valid', async () => {
  const request = { nonce: newNonce(), timestamp: stamp(300) };
  assert.equal((await file(request)).status, 200);
  for (let elapsedS = 0; elapsedS < 600; elapsedS += 100) {
    clock.advance(100_000);
    assertRejected(await file(request), 401, 'NONCE_REUSED');
  }
  clock.advance(1_000);
  assertRejected(await file(request), 401, 'TIMESTAMP_EXPIRED');
});

test('a request is rejected if its timestamp expires before its body arrives', async (t) => {
  let looks = 0;
  const nowMs = () => {
    looks += 1;
    return clock.nowMs();
  };
  const slow = await startService(t, { clock: { ...clock, nowMs }, limits: { pollMs: 3_600_000 } });
  const sent = {
    target: '/api/v1/filing',
    body: JSON.stringify(artwork),
    timestamp: stamp(),
    nonce: newNonce(),
  };
  const headers = headersOf(await slow.platform(), sent);
  const length = { 'Content-Length': Buffer.byteLength(sent.body) };
  const looksBefore = looks;
  const posted = request(`${slow.publicUrl}${sent.target}`, {
    method: 'POST',
    headers: { ...headers, ...length },
  });
  const answered = once(posted, 'response');
  posted.flushHeaders();
  await eventually('the server checks the headers', 60_000, () => looks > looksBefore);
  clock.setWall(clock.nowMs() + 301_000);
  posted.end(sent.body);
  const [response] = await answered;
  assert.match(await text(response), /TIMESTAMP_EXPIRED/);
});
