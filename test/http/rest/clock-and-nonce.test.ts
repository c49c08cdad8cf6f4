import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { tester } from '../../support/audit-log.ts';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce } from '../../support/signed-request.ts';

const clock = createManualClock(Date.UTC(2026, 5, 10, 12));
const service = await startService(fileScope, { clock });
const ledger = openLedger(fileScope, service);
const platform = await service.platform();

const nowS = () => Math.floor(clock.nowMs() / 1_000);
/** A timestamp so many seconds off the clock of the server. */
const stamp = (differenceS = 0) => String(nowS() + differenceS);
const file = (options: { nonce?: string; timestamp?: string } = {}, by = platform) =>
  fileArtwork(service, by, { timestamp: stamp(), ...options });

/** Sets the wall clock, which an operator then says to be right: filings are dated by it. */
async function setClock(wallMs: number): Promise<void> {
  clock.setWall(wallMs);
  await service.execute({ kind: 'AcceptClock', by: { ...tester, atS: nowS() } });
}

for (const differenceS of [-300, -299, 0, 299, 300]) {
  test(`a timestamp ${differenceS} s off is accepted`, async () => {
    assert.equal((await file({ timestamp: stamp(differenceS) })).status, 200);
  });
}

for (const differenceS of [-301, 301, -86_400, 86_400]) {
  test(`a timestamp ${differenceS} s off is refused with the server's clock, and spends nothing`, async () => {
    const before = { ...ledger.holdings(), calls: ledger.calls(platform.caller) };
    const nonce = newNonce();
    const answer = await file({ timestamp: stamp(differenceS), nonce });
    assertRefused(answer, 401, 'TIMESTAMP_EXPIRED', /X-Timestamp/, /300 seconds/);
    assert.equal(answer.headers['x-server-time'], String(nowS()));
    assert.deepEqual({ ...ledger.holdings(), calls: ledger.calls(platform.caller) }, before);
    assert.equal((await file({ nonce })).status, 200);
  });
}

const otherForms = [
  () => String(clock.nowMs()),
  () => `${stamp()}.0`,
  () => `+${stamp()}`,
  () => `0${stamp()}`,
  () => stamp().slice(1),
  () => new Date(clock.nowMs()).toISOString(),
  () => 'now',
];

for (const form of otherForms) {
  test(`the timestamp ${form()} is refused with the server's clock, though it may mean the present`, async () => {
    const answer = await file({ timestamp: form() });
    assertRefused(answer, 401, 'TIMESTAMP_EXPIRED', /X-Timestamp.*whole seconds/);
    assert.equal(answer.headers['x-server-time'], String(nowS()));
  });
}

test('a client can set its clock by the apiError', async () => {
  const refused = await file({ timestamp: stamp(5_000) });
  assert.equal((await file({ timestamp: String(refused.headers['x-server-time']) })).status, 200);
});

test('a request sent again as it was is refused and files nothing', async () => {
  const request = { nonce: newNonce(), timestamp: stamp() };
  assert.equal((await file(request)).status, 200);
  const before = ledger.holdings();
  const calls = ledger.calls(platform.caller);
  assertRefused(await file(request), 401, 'NONCE_REUSED', /nonce/);
  assert.deepEqual(ledger.holdings(), before);
  assert.equal(ledger.calls(platform.caller), calls);
});

test('of a hundred identical requests at once exactly one is carried out', async () => {
  const request = { nonce: newNonce(), timestamp: stamp() };
  const before = ledger.holdings();
  const answers = await Promise.all(Array.from({ length: 100 }, () => file(request)));
  const refused = answers.filter(({ status }) => status !== 200);
  assert.equal(refused.length, 99);
  for (const answer of refused) assertRefused(answer, 401, 'NONCE_REUSED');
  assert.deepEqual(ledger.holdings(), { ...before, filings: before.filings + 1 });
});

test('a nonce is refused with a new timestamp, another body and another route as well', async () => {
  const nonce = newNonce();
  assert.equal((await file({ nonce })).status, 200);
  clock.advance(1_000);
  assertRefused(await file({ nonce }), 401, 'NONCE_REUSED');
  assertRefused(
    await askProvenance(service, platform, 'x', { nonce, timestamp: stamp() }),
    401,
    'NONCE_REUSED',
  );
});

test('a nonce spent by one key can be used by another, of the same caller too', async () => {
  const nonce = newNonce();
  const first = await service.platform();
  const { key, apiSecret } = await service.issuance.rotateKey(first.keyId, 3_600, tester);
  const sameCaller = { ...first, apiKey: key.apiKey, apiSecret };
  for (const by of [first, sameCaller, platform]) {
    assert.equal((await file({ nonce }, by)).status, 200);
    assertRefused(await file({ nonce }, by), 401, 'NONCE_REUSED');
  }
});

test('nonces that differ in case alone are different', async () => {
  const nonce = newNonce();
  for (const each of [`${nonce}-abc`, `${nonce}-ABC`])
    assert.equal((await file({ nonce: each })).status, 200);
});

test('a nonce is remembered for 660 seconds and can be used again after them', async () => {
  for (const startS of [0, 100, 329, 330, 500]) {
    clock.advance(startS * 1_000);
    const nonce = newNonce();
    assert.equal((await file({ nonce })).status, 200);
    clock.advance(659_000);
    assertRefused(await file({ nonce }), 401, 'NONCE_REUSED');
    clock.advance(1_000);
    assert.equal((await file({ nonce })).status, 200, `${startS} s`);
    assertRefused(await file({ nonce }), 401, 'NONCE_REUSED');
  }
});

test('a request dated ahead as far as allowed is never accepted twice while its timestamp is valid', async () => {
  const request = { nonce: newNonce(), timestamp: stamp(300) };
  assert.equal((await file(request)).status, 200);
  for (let elapsedS = 0; elapsedS < 600; elapsedS += 100) {
    clock.advance(100_000);
    assertRefused(await file(request), 401, 'NONCE_REUSED');
  }
  clock.advance(1_000);
  assertRefused(await file(request), 401, 'TIMESTAMP_EXPIRED');
});

test('spent nonces do not pile up: old ones are forgotten as new ones come', async () => {
  for (let call = 0; call < 20; call += 1) await file();
  clock.advance(3_600_000);
  const calls = 150;
  await Promise.all(Array.from({ length: calls }, () => file()));
  assert.equal(ledger.nonces(), calls);
});

test('a clock set back does not make a spent nonce good again', async () => {
  const nonce = newNonce();
  assert.equal((await file({ nonce })).status, 200);
  const wallMs = clock.nowMs();
  for (const backS of [1, 100, 300, 600, 659]) {
    clock.setWall(wallMs - backS * 1_000);
    assertRefused(await file({ nonce }), 401, 'NONCE_REUSED');
  }
  clock.setWall(wallMs);
});

test('old nonces are forgotten as new ones come, too, after the clock was set ahead and back', async () => {
  const wallMs = clock.nowMs();
  await setClock(wallMs + 86_400_000);
  assert.equal((await file()).status, 200);
  await setClock(wallMs);
  for (let call = 0; call < 20; call += 1) await file();
  const spent = ledger.nonces();
  for (let round = 0; round < 10; round += 1) {
    clock.advance(3_600_000);
    await Promise.all(Array.from({ length: 150 }, () => file()));
  }
  assert.ok(spent > 150);
  assert.ok(ledger.nonces() <= 2 * 150 + 1, `${ledger.nonces()} nonces`);
});

test('a request is never accepted twice when the clock is set ahead by hours and back, whatever came in between', async () => {
  const request = { nonce: newNonce(), timestamp: stamp() };
  assert.equal((await file(request)).status, 200);
  const wallMs = clock.nowMs();
  for (let jump = 0; jump < 3; jump += 1) {
    await setClock(wallMs + 18_000_000);
    assertRefused(await file(request), 401, 'TIMESTAMP_EXPIRED');
    for (let burst = 0; burst < 3; burst += 1) {
      await Promise.all(Array.from({ length: 100 }, () => file()));
      clock.advance(1_000);
    }
    await setClock(wallMs + 1_000 * jump);
    assertRefused(await file(request), 401, 'NONCE_REUSED');
  }
  await setClock(wallMs);
});

test('a clock that was set ahead and back again leaves nonces usable after 660 seconds', async () => {
  const wallMs = clock.nowMs();
  await setClock(wallMs + 86_400_000);
  assert.equal((await file()).status, 200);
  await setClock(wallMs);
  const nonce = newNonce();
  assert.equal((await file({ nonce })).status, 200);
  assertRefused(await file({ nonce }), 401, 'NONCE_REUSED');
  clock.advance(660_000);
  const again = await file({ nonce });
  assert.equal(again.status, 200, again.text);
});

test('a request whose body arrives when its timestamp has expired is refused, since its nonce may be forgotten', async (t) => {
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
  await eventually('the head is looked at', 60_000, () => looks > looksBefore);
  clock.setWall(clock.nowMs() + 301_000);
  posted.end(sent.body);
  const [response] = await answered;
  assert.match(await text(response), /TIMESTAMP_EXPIRED/);
});
