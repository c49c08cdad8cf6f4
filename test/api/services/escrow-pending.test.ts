import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tester } from '../../support/audit-log.ts';
import { doorNames, doorsOf, type EscrowDoor, type Outcome, startDoors } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';

/** Patience that runs out at once, and recovery that does not wait. */
const hasty = { answerTimeoutMs: 20, firstRetryMs: 10, longestRetryMs: 40, pollMs: 10 };
/** The same, and no hold is waited for. */
const hastyClosing = { ...hasty, freezeDeadlineMs: 100 };
/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

/** Waits until an order is in a state. */
function comesTo(door: EscrowDoor, escrowId: string, state: string): Promise<Outcome> {
  return eventually(`${escrowId} is ${state}`, timeoutMs, async () => {
    const now = await door.get(escrowId);
    return now.state === state && now;
  });
}

function assertPending({ code, message, escrowId, retryAfter }: Outcome, of?: string): void {
  assert.equal(code, 'PAYMENT_PENDING', message);
  assert.match(escrowId, /^ES-\d{4}-[0-9A-Z]{4}$/);
  if (of !== undefined) assert.equal(escrowId, of);
  assert.match(retryAfter ?? '', /^[1-9]\d*$/);
}

for (const name of doorNames) {
  test(`${name}: an order that nothing is heard of is UNPAID, and FROZEN once it is held`, async (t) => {
    const provider = openTestProvider(t, { FREEZE: 'SILENT' });
    const { doors, file } = await startDoors(t, { provider, limits: hasty });
    const filingNo = await file();
    const pending = await doors[name].open(filingNo);
    assertPending(pending);
    const { escrowId } = pending;
    const unpaid = await doors[name].get(escrowId);
    assert.deepEqual([unpaid.state, unpaid.pending, unpaid.history], ['UNPAID', 'FREEZE', ['UNPAID']]);
    const second = await doors[name].open(filingNo);
    assert.deepEqual([second.code, second.escrowId], ['ESCROW_ACTIVE', escrowId]);
    provider.treat({ FREEZE: 'CONFIRMED' });
    const frozen = await comesTo(doors[name], escrowId, 'FROZEN');
    assert.deepEqual([frozen.pending, frozen.history], [undefined, ['UNPAID', 'FROZEN']]);
    const ids = new Set(provider.instructions.map(({ instructionId }) => instructionId));
    assert.deepEqual([ids.size, provider.carriedOut('FREEZE')], [1, 1]);
  });

  test(`${name}: an order that nothing is ever heard of is cancelled and CLOSED`, async (t) => {
    const provider = openTestProvider(t, { FREEZE: 'SILENT', CANCEL: 'SILENT' });
    const { doors, file } = await startDoors(t, { provider, limits: hastyClosing });
    const filingNo = await file();
    const pending = await doors[name].open(filingNo);
    assertPending(pending);
    const isCancelling = async () => provider.instructions.at(-1)?.kind === 'CANCEL';
    await eventually('the order is being cancelled', timeoutMs, isCancelling);
    const unpaid = await doors[name].get(pending.escrowId);
    assert.deepEqual([unpaid.state, unpaid.pending], ['UNPAID', 'REFUND']);
    provider.treat({ CANCEL: 'CONFIRMED' });
    const closed = await comesTo(doors[name], pending.escrowId, 'CLOSED');
    assert.deepEqual([closed.pending, closed.history], [undefined, ['UNPAID', 'CLOSED']]);
    assert.equal(provider.statusOf(pending.escrowId), 'VOID');
    assert.equal(provider.instructions.at(-1)?.kind, 'CANCEL');
    provider.treat({ FREEZE: 'CONFIRMED' });
    assert.equal((await doors[name].open(filingNo)).state, 'FROZEN');
  });

  for (const treatment of ['LOST', 'ANSWER_LOST', 'SILENT'] as const) {
    for (const [kind, verb, state, transfers] of [
      ['RELEASE', 'release', 'RELEASED', 1],
      ['REFUND', 'refund', 'REFUNDED', 0],
    ] as const) {
      test(`${name}: a ${verb} whose fate is unknown (${treatment}) is settled later, once`, async (t) => {
        const provider = openTestProvider(t, { [kind]: treatment });
        const { doors, file, transfersOf } = await startDoors(t, { provider, limits: hasty });
        const filingNo = await file();
        const { escrowId } = await doors[name].open(filingNo);
        provider.treatLookUps({ kind: 'SILENT' });
        assertPending(await doors[name][verb](escrowId), escrowId);
        const frozen = await doors[name].get(escrowId);
        assert.deepEqual([frozen.state, frozen.pending], ['FROZEN', kind]);
        provider.treatLookUps({ kind: 'NONE' });
        provider.treat({ [kind]: 'CONFIRMED' });
        const settled = await comesTo(doors[name], escrowId, state);
        assert.deepEqual([settled.pending, settled.history], [undefined, ['UNPAID', 'FROZEN', state]]);
        assert.equal(await transfersOf(filingNo), transfers);
        const given = provider.instructions.filter((instruction) => instruction.kind === kind);
        assert.equal(new Set(given.map(({ instructionId }) => instructionId)).size, 1);
        assert.equal(provider.carriedOut(kind), 1);
        assert.equal((await doors[name][verb](escrowId)).code, 'ESCROW_STATE_CONFLICT');
      });
    }
  }

  test(`${name}: a release declined in the end leaves the order FROZEN and refundable`, async (t) => {
    const provider = openTestProvider(t, { RELEASE: 'LOST' });
    const { doors, file } = await startDoors(t, { provider, limits: hasty });
    const { escrowId } = await doors[name].open(await file());
    assertPending(await doors[name].release(escrowId), escrowId);
    provider.treat({ RELEASE: 'DECLINED' });
    const refunded = await eventually('the release is over', timeoutMs, async () => {
      const outcome = await doors[name].refund(escrowId);
      return outcome.code === undefined && outcome;
    });
    assert.deepEqual(refunded.history, ['UNPAID', 'FROZEN', 'REFUNDED']);
    assert.deepEqual([provider.carriedOut('RELEASE'), provider.carriedOut('REFUND')], [0, 1]);
  });

  test(`${name}: what the simulated provider loses is settled; silence changes nothing`, async (t) => {
    const { doors, file } = await startDoors(t, { limits: hasty });
    for (const [buyerId, state] of [
      ['sim-lost-answer', 'FROZEN'],
      ['sim-lost-request', 'FROZEN'],
      ['sim-silent', 'UNPAID'],
    ] as const) {
      const pending = await doors[name].open(await file(), { buyerId });
      assertPending(pending);
      await comesTo(doors[name], pending.escrowId, state);
    }
    const paid = await doors[name].open(await file(), { sellerId: 'sim-lost-answer' });
    assertPending(await doors[name].release(paid.escrowId), paid.escrowId);
    await comesTo(doors[name], paid.escrowId, 'RELEASED');
  });
}

test('the order of a platform that was suspended meanwhile is settled all the same', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'SILENT' });
  const { service, platform, doors, file } = await startDoors(t, { provider, limits: hasty });
  const { escrowId } = await doors.REST.open(await file());
  await service.execute({
    kind: 'SetPlatformStatus',
    by: tester,
    name: platform.caller,
    status: 'SUSPENDED',
  });
  assert.equal((await doors.REST.get(escrowId)).code, 'KEY_SUSPENDED');
  provider.treat({ FREEZE: 'CONFIRMED' });
  await comesTo(doors['typed RPC'], escrowId, 'FROZEN');
});

test('what was pending is settled by the process that comes next', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'SILENT' });
  const before = await startDoors(t, { provider, limits: hasty });
  const { escrowId } = await before.doors.REST.open(await before.file());
  await before.service.close();
  provider.treat({ FREEZE: 'CONFIRMED' });
  const { dataDir } = before.service;
  const service = await startService(t, { provider, limits: hasty, dataDir });
  const { doors } = await doorsOf(service, before.platform);
  await comesTo(doors.REST, escrowId, 'FROZEN');
  assert.equal(provider.carriedOut('FREEZE'), 1);
});

test('a hold that comes after its order was called off is no hold', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const { doors, file } = await startDoors(t, { provider, limits: hastyClosing });
  const { escrowId } = await doors.REST.open(await file());
  await comesTo(doors.REST, escrowId, 'CLOSED');
  await provider.answer();
  assert.equal(provider.statusOf(escrowId), 'VOID');
  assert.equal((await doors.REST.get(escrowId)).state, 'CLOSED');
});
