import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileScope } from '../support/file-scope.ts';
import { rawAnswer, rawExchange, rawRequest } from '../support/raw-http.ts';
import { assertRefused } from '../support/refused.ts';
import { artwork } from '../support/samples.ts';
import { headersOf, type RestAnswer, send } from '../support/signed-request.ts';
import { startWeighedService } from '../support/weighed-service.ts';

/** What peers without a key may keep alive in a service, in bytes. */
const heldBytesMax = 64 * 1_048_576;
/** Bodies of 64 KiB that may arrive at the same time. */
const arrivingMax = 512;
const peers = 2_000;

const service = await startWeighedService(fileScope);
const { publicUrl, platforms, weigh } = service;
const target = '/api/v1/filing';
const nobody = { apiKey: 'nobody', apiSecret: 'nothing' };

/** A request of nobody's, of whose 64 KiB of body so many are sent. */
function request(sentBytes: number): Uint8Array {
  const headers = { Host: 'x', ...headersOf(nobody, { target, body: '' }), 'Content-Length': '65536' };
  return rawRequest('POST', target, headers, 'x'.repeat(sentBytes));
}

async function assertServes(): Promise<void> {
  for (const platform of platforms) {
    const answer = await send(publicUrl, platform, { target, body: JSON.stringify(artwork) });
    assert.equal(answer.status, 200, answer.text);
  }
}

test('peers that never send the rest of their bodies hold at most 64 MB, and keep nobody out', async () => {
  for (let count = 0; count < 300; count += 1) await assertServes();
  const before = await weigh();
  const refused: RestAnswer[] = [];
  const { promise: allRefused, resolve, reject } = Promise.withResolvers<void>();
  for (let peer = 0; peer < peers; peer += 1) {
    rawExchange(publicUrl, request(60_000)).then(({ answers }) => {
      refused.push(...answers);
      if (refused.length === peers - arrivingMax) resolve();
    }, reject);
  }
  await allRefused;
  for (const answer of refused) assertRefused(answer, 503, 'UNAVAILABLE', /this one takes longest/);
  const { held } = await weigh();
  assert.ok(held - before.held <= heldBytesMax, `${held - before.held} bytes more are alive`);
  await assertServes();
  // The one that has only begun is not the one that goes.
  const whole = await rawAnswer(publicUrl, request(65_536));
  assertRefused(whole, 401, 'SIGNATURE_INVALID');
});

test('requests that are answered before their bodies have come leave nothing behind', async () => {
  const refuse = async () => {
    const answer = await rawAnswer(
      publicUrl,
      rawRequest('POST', target, { Host: 'x', 'Content-Length': '1' }),
      {
        end: true,
      },
    );
    assertRefused(answer, 401, 'AUTH_HEADER_MISSING');
  };
  await refuse();
  const before = await weigh();
  for (let round = 0; round < 100; round += 1) await Promise.all(Array.from({ length: 50 }, refuse));
  const { held } = await weigh();
  assert.ok(held - before.held <= 5_000_000, `${held - before.held} bytes more are alive`);
});
