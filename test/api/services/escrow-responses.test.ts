import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { getEscrow, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { apiNames, startApis } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openTestProvider } from '../../support/simulator.ts';

const url = 'https://bank.example/confirm/1?session=a%20b';
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;
const timeoutMs = 60_000;

const provider = openTestProvider(fileScope);
const { service, platform, apis, file } = await startApis(fileScope, {
  provider,
  limits: { pollMs: 10, buyerLookUpMs: 20 },
});

test('a required action of the buyer is in the response and in each read until it is done', async () => {
  provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: url }));
  const filingNo = await file();
  const options = { headers: { 'Idempotency-Key': randomUUID() } };
  const opened = await openEscrow(service, platform, filingNo, {}, options);
  assert.equal(opened.status, 200);
  const { escrowId, amount, nextAction } = opened.json;
  assert.match(nextAction.expiresAt, rfc3339);
  assert.deepEqual(opened.json, {
    ...{ escrowId, state: 'UNPAID', clearing: 'LICENSED_PSP_NO_SECOND_CLEARING', amount },
    nextAction: { url, expiresAt: nextAction.expiresAt },
  });
  const { json: read } = await getEscrow(service, platform, escrowId);
  assert.deepEqual([read.state, read.pending, read.nextAction], ['UNPAID', 'FREEZE', nextAction]);
  const again = await openEscrow(service, platform, filingNo, {}, options);
  assert.deepEqual([again.status, again.json], [200, opened.json]);

  provider.report();
  await eventually('the amount is held', timeoutMs, async () => {
    const { json } = await getEscrow(service, platform, escrowId);
    return json.state === 'FROZEN' && !('nextAction' in json);
  });
  const last = await openEscrow(service, platform, filingNo, {}, options);
  assert.deepEqual(last.json, { escrowId, state: 'FROZEN', clearing: read.clearing, amount });
  assert.equal(new Set(provider.instructions.map(({ instructionId }) => instructionId)).size, 1);
});

test('a read shows the end of the hold only while the order is FROZEN', async () => {
  const holdExpiresAtMs = Date.parse('2026-12-01T08:00:00.750Z');
  provider.report((_, truth) => ({ ...truth, holdExpiresAtMs }));
  const { json: opened } = await openEscrow(service, platform, await file());
  assert.deepEqual(Object.keys(opened), ['escrowId', 'state', 'clearing', 'amount']);
  const { json: frozen } = await getEscrow(service, platform, opened.escrowId);
  assert.equal(frozen.holdExpiresAt, '2026-12-01T08:00:00+00:00');
  const { json: released } = await releaseEscrow(service, platform, opened.escrowId);
  assert.deepEqual([released.state, 'holdExpiresAt' in released], ['RELEASED', false]);
});

for (const name of apiNames) {
  test(`${name}: PAYMENT_DECLINED has the words for the buyer, and nothing else of the provider`, async () => {
    provider.treat({ FREEZE: 'DECLINED' });
    const words = 'The card has too little money for this.';
    const detail = 'decline_code insufficient_funds of cus_1, req_1';
    provider.report((_, truth) => ({ ...truth, declined: { code: 'card_declined', words, detail } }));
    const { code, message, escrowId } = await apis[name].open(await file());
    provider.treat({ FREEZE: 'CONFIRMED' });
    assert.equal(code, 'PAYMENT_DECLINED');
    assert.equal(message, `The payment provider declined the FREEZE of ${escrowId}. ${words}`);
  });
}

test('the history has what happened to the money after the release', async () => {
  provider.report();
  const { json: opened } = await openEscrow(service, platform, await file());
  await releaseEscrow(service, platform, opened.escrowId);
  provider.report((_, truth) => ({ ...truth, status: 'PARTLY_RETURNED', amount: 5n }));
  const [{ holdId } = assert.fail()] = provider.instructionsOf(opened.escrowId);
  const notification = { eventId: 'refunded', about: { holdId }, nowMs: Date.now() };
  await service.execute({ kind: 'TakeNotification', ...notification });
  const history = await eventually('the refund is in the history', timeoutMs, async () => {
    const { json } = await getEscrow(service, platform, opened.escrowId);
    return json.state === 'RELEASED' && json.history.length === 4 && json.history;
  });
  const { at, ...rest } = history.at(-1);
  assert.match(at, rfc3339);
  assert.deepEqual(rest, { state: 'RELEASED', payment: 'PARTLY_RETURNED', left: 5 });
});
