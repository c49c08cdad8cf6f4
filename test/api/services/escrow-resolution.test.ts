import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiNames, apisOf, type EscrowResult, startApis } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openTestProvider } from '../../support/simulator.ts';

const provider = openTestProvider(fileScope);
const { service, apis, file, transfersOf } = await startApis(fileScope, {
  provider,
  limits: { pollMs: 20 },
});

const resolutions = [
  { kind: 'RELEASE', verb: 'release', other: 'refund', state: 'RELEASED', transfers: 1 },
  { kind: 'REFUND', verb: 'refund', other: 'release', state: 'REFUNDED', transfers: 0 },
] as const;

/** Opens a FROZEN order through an API. */
async function openFrozen(name: (typeof apiNames)[number]) {
  const filingNo = await file();
  const { escrowId, state, message } = await apis[name].open(filingNo);
  assert.equal(state, 'FROZEN', message);
  return { escrowId, filingNo };
}

/** Asserts that a call failed with a reason and a message about an order. */
function assertRejected({ code, message }: EscrowResult, reason: string, pattern: string): void {
  assert.equal(code, reason, message);
  assert.match(message, new RegExp(pattern));
}

for (const name of apiNames) {
  const api = apis[name];

  for (const { kind, verb, other, state, transfers } of resolutions) {
    test(`${name}: a ${verb} ends the order as ${state}, and later resolutions are rejected`, async () => {
      const { escrowId, filingNo } = await openFrozen(name);
      const done = await api[verb](escrowId);
      assert.deepEqual([done.state, done.history], [state, ['UNPAID', 'FROZEN', state]], done.message);
      for (const again of [verb, other] as const) {
        const message = `^${escrowId} is ${state}; only (a|an UNPAID or) FROZEN order`;
        assertRejected(await api[again](escrowId), 'ESCROW_STATE_CONFLICT', message);
      }
      assert.deepEqual(await api.get(escrowId), done);
      assert.equal(await transfersOf(filingNo), transfers);
      const sent = provider.instructionsOf(escrowId).map((instruction) => instruction.kind);
      assert.deepEqual(sent, ['FREEZE', kind]);
      assert.equal((await api.open(filingNo)).state, 'FROZEN', 'the artwork can be sold again');
    });
  }

  test(`${name}: a declined hold closes the order, and the response says why`, async () => {
    provider.treat({ FREEZE: 'DECLINED' });
    const filingNo = await file();
    const declined = await api.open(filingNo);
    const { escrowId } = declined;
    const message = `declined the FREEZE of ${escrowId}\\. The payment provider refused it\\.$`;
    assertRejected(declined, 'PAYMENT_DECLINED', message);
    assert.deepEqual((await api.get(escrowId)).history, ['UNPAID', 'CLOSED']);
    assert.equal((await api.release(escrowId)).code, 'ESCROW_STATE_CONFLICT');
    provider.treat({ FREEZE: 'CONFIRMED' });
    assert.equal((await api.open(filingNo)).state, 'FROZEN');
  });

  test(`${name}: an unknown order or filing is not found`, async () => {
    for (const escrowId of ['ES-2026-0000', 'es-2026-0000', 'x', 'AS-2026-000001', '-']) {
      for (const verb of ['get', 'release', 'refund'] as const) {
        assert.equal((await api[verb](escrowId)).code, 'ESCROW_NOT_FOUND', `${verb} ${escrowId}`);
      }
    }
    assert.equal((await api.open('AS-2026-999999')).code, 'FILING_NOT_FOUND');
  });
}

for (const { kind, verb, state } of resolutions) {
  test(`a declined ${verb} leaves the order FROZEN, and can be repeated`, async () => {
    const { escrowId, filingNo } = await openFrozen('REST');
    provider.treat({ [kind]: 'DECLINED' });
    const message = `declined the ${kind} of ${escrowId}\\. The payment provider refused it\\.$`;
    assertRejected(await apis.REST[verb](escrowId), 'PAYMENT_DECLINED', message);
    assert.deepEqual((await apis.REST.get(escrowId)).history, ['UNPAID', 'FROZEN']);
    assert.equal(await transfersOf(filingNo), 0);
    provider.treat({ [kind]: 'CONFIRMED' });
    assert.equal((await apis.REST[verb](escrowId)).state, state);
  });
}

test('a release of a lapsed hold is declined, and the order is CLOSED', async () => {
  const { escrowId, filingNo } = await openFrozen('RPC');
  provider.lapse(escrowId);
  assertRejected(await apis.RPC.release(escrowId), 'PAYMENT_DECLINED', `${escrowId}\\.$`);
  assert.deepEqual((await apis.RPC.get(escrowId)).history, ['UNPAID', 'FROZEN', 'CLOSED']);
  assert.equal(await transfersOf(filingNo), 0);
});

test('an order in review is neither released nor refunded', async () => {
  const { escrowId } = await openFrozen('REST');
  provider.report((_, payment) => ({ ...payment, amount: 1n }));
  const [{ holdId } = assert.fail()] = provider.instructionsOf(escrowId);
  await service.execute({
    kind: 'TakeNotification',
    eventId: escrowId,
    about: { holdId },
    nowMs: Date.now(),
  });
  await eventually('the order is in review', 60_000, async () => {
    const found = await service.execute({ kind: 'FindCase', escrowId });
    return found?.review !== undefined;
  });
  provider.report();
  for (const verb of ['release', 'refund'] as const) {
    assertRejected(await apis.REST[verb](escrowId), 'ESCROW_STATE_CONFLICT', 'decision of the operator');
  }
  assert.equal((await apis.REST.get(escrowId)).state, 'FROZEN');
});

test('of twenty concurrent releases through both APIs, one pays', async () => {
  const { escrowId, filingNo } = await openFrozen('REST');
  provider.treat({ RELEASE: 'KEPT_BACK' });
  const calls = Array.from({ length: 10 }, () => apiNames.map((name) => apis[name].release(escrowId))).flat();
  await eventually(
    'the provider has the RELEASE',
    60_000,
    () => provider.instructionsOf(escrowId).length > 1,
  );
  await provider.answer();
  provider.treat({ RELEASE: 'CONFIRMED' });
  const results = await Promise.all(calls);
  const done = results.filter(({ code }) => code === undefined);
  assert.ok(done.length > 0 && done.every(({ state }) => state === 'RELEASED'));
  for (const { code } of results)
    assert.ok([undefined, 'ESCROW_STATE_CONFLICT'].includes(code), String(code));
  assert.equal(await transfersOf(filingNo), 1);
  assert.equal(provider.instructionsOf(escrowId).length, 2);
});

test('of concurrent orders for one artwork, through both APIs, one is opened and held', async () => {
  provider.treat({ FREEZE: 'KEPT_BACK' });
  const before = provider.instructions.length;
  const filingNo = await file();
  const calls = Array.from({ length: 10 }, () => apiNames.map((name) => apis[name].open(filingNo))).flat();
  await eventually('the provider has a FREEZE', 60_000, () => provider.instructions.length > before);
  // The others do not wait for the one that holds.
  const first = await Promise.race(calls);
  assert.equal(first.code, 'ESCROW_ACTIVE');
  await provider.answer();
  provider.treat({ FREEZE: 'CONFIRMED' });
  const results = await Promise.all(calls);
  assert.equal(results.filter(({ state }) => state === 'FROZEN').length, 1);
  assert.equal(results.filter(({ code }) => code === 'ESCROW_ACTIVE').length, calls.length - 1);
  assert.equal(provider.instructions.length, before + 1);
});

test('of a release and refunds of one order at the same moment, one happens', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { escrowId, filingNo } = await openFrozen('REST');
    const results = await Promise.all([
      apis.REST.release(escrowId),
      apis.RPC.refund(escrowId),
      apis.REST.refund(escrowId),
    ]);
    const { state } = await apis.REST.get(escrowId);
    const done = results.filter(({ code }) => code === undefined);
    assert.ok(done.length > 0 && done.every((result) => result.state === state));
    for (const { code } of results)
      assert.ok([undefined, 'ESCROW_STATE_CONFLICT'].includes(code), String(code));
    assert.equal(provider.instructionsOf(escrowId).length, 2);
    assert.equal(await transfersOf(filingNo), state === 'RELEASED' ? 1 : 0);
  }
});

test("another platform's order is not found and stays as it is; an internal system reaches it", async () => {
  const theirs = await apisOf(service, await service.platform());
  const { escrowId, filingNo } = await openFrozen('REST');
  const before = await apis.REST.get(escrowId);
  const unknown = await theirs.apis.REST.get('ES-2026-0000');
  for (const verb of ['get', 'release', 'refund'] as const) {
    // The same words as for an order that does not exist.
    assert.deepEqual(await theirs.apis.REST[verb](escrowId), unknown, verb);
  }
  assert.deepEqual(await apis.REST.get(escrowId), before);
  assert.equal(provider.instructionsOf(escrowId).length, 1);
  assert.equal((await apis.RPC.release(escrowId)).state, 'RELEASED');
  assert.equal(await transfersOf(filingNo), 1);
});
