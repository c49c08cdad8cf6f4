import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getEscrow, openEscrow, refundEscrow } from '../../support/calls.ts';
import { doorNames, startDoors } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { openTestProvider } from '../../support/simulator.ts';

const nextActionUrl = 'https://bank.example/confirm/1';
const hasty = { answerTimeoutMs: 20, firstRetryMs: 10, longestRetryMs: 40, pollMs: 10 };
const timeoutMs = 60_000;

for (const name of doorNames) {
  test(`${name}: a refund cancels an order whose buyer has not acted: CLOSED, and the artwork can be sold again`, async (t) => {
    const { service, doors, file } = await startDoors(t);
    const filingNo = await file();
    const { escrowId, state } = await doors[name].open(filingNo, { buyerId: 'sim-must-act-never' });
    assert.equal(state, 'UNPAID');
    const closed = await doors[name].refund(escrowId);
    assert.deepEqual([closed.state, closed.pending], ['CLOSED', undefined], closed.message);
    assert.deepEqual(closed.history, ['UNPAID', 'CLOSED']);
    assert.deepEqual(await doors[name].get(escrowId), closed);
    for (const verb of ['refund', 'release'] as const) {
      assert.equal((await doors[name][verb](escrowId)).code, 'ESCROW_STATE_CONFLICT');
    }
    const { events } = await service.execute({ kind: 'ReadAllEvents', after: undefined });
    assert.deepEqual(
      events.filter((event) => event.escrowId === escrowId).map(({ type }) => type),
      ['escrow.closed'],
    );
    assert.equal((await doors[name].open(filingNo)).state, 'FROZEN');
  });

  test(`${name}: as long as no CANCEL is confirmed, the order is UNPAID with pending REFUND`, async (t) => {
    const provider = openTestProvider(t, { CANCEL: 'SILENT' });
    provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl }));
    const { doors, file } = await startDoors(t, { provider, limits: hasty });
    const { escrowId } = await doors[name].open(await file());
    for (const _ of ['first', 'second', 'third']) {
      const pending = await doors[name].refund(escrowId);
      assert.deepEqual([pending.code, pending.escrowId], ['PAYMENT_PENDING', escrowId], pending.message);
    }
    const unpaid = await doors[name].get(escrowId);
    assert.deepEqual([unpaid.state, unpaid.pending, unpaid.history], ['UNPAID', 'REFUND', ['UNPAID']]);
    const release = await doors[name].release(escrowId);
    assert.equal(release.code, 'ESCROW_STATE_CONFLICT');
    // The buyer has acted meanwhile: the amount is held, and goes back.
    provider.report();
    provider.treat({ CANCEL: 'CONFIRMED' });
    const closed = await eventually('the order is CLOSED', timeoutMs, async () => {
      const now = await doors[name].get(escrowId);
      return now.state === 'CLOSED' && now;
    });
    assert.deepEqual([closed.pending, closed.history], [undefined, ['UNPAID', 'CLOSED']]);
    assert.equal(provider.statusOf(escrowId), 'RETURNED');
    const given = provider.instructions.filter(({ kind }) => kind !== 'FREEZE');
    assert.deepEqual([...new Set(given.map(({ kind }) => kind))], ['CANCEL']);
    assert.equal(new Set(given.map(({ instructionId }) => instructionId)).size, 1);
  });

  test(`${name}: where the provider does not cancel, the refund is declined and a person decides`, async (t) => {
    const provider = openTestProvider(t, { CANCEL: 'DECLINED' });
    provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl }));
    const { service, doors, file } = await startDoors(t, { provider });
    const { escrowId } = await doors[name].open(await file());
    const declined = await doors[name].refund(escrowId);
    assert.equal(declined.code, 'PAYMENT_DECLINED');
    assert.match(declined.message, new RegExp(`declined the REFUND of ${escrowId}`));
    assert.equal((await doors[name].get(escrowId)).state, 'UNPAID');
    const found = await service.execute({ kind: 'FindCase', escrowId });
    assert.match(found?.review ?? '', /declines to give back/);
  });
}

test('a refund while the FREEZE is being given: the hold that it makes goes back, and the order is CLOSED', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const { service, platform, file } = await startDoors(t, { provider, limits: { pollMs: 10 } });
  const filingNo = await file();
  const opening = openEscrow(service, platform, filingNo);
  await provider.instructed('FREEZE');
  const [{ escrowId } = assert.fail()] = provider.instructions;
  const refunding = refundEscrow(service, platform, escrowId);
  await eventually('the refund is written down', timeoutMs, async () => {
    const { json } = await getEscrow(service, platform, escrowId);
    return json.pending === 'REFUND';
  });
  await provider.answer();
  const [opened, refunded] = await Promise.all([opening, refunding]);
  assert.equal(opened.json.code, 'PAYMENT_PENDING');
  assert.deepEqual([refunded.status, refunded.json.state], [200, 'CLOSED']);
  assert.deepEqual(
    refunded.json.history.map(({ state }: { state: string }) => state),
    ['UNPAID', 'CLOSED'],
  );
  assert.equal(provider.statusOf(escrowId), 'RETURNED');
});

test('an order that is being cancelled has no nextAction', async (t) => {
  const provider = openTestProvider(t, { CANCEL: 'SILENT' });
  provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl }));
  const { service, platform, file } = await startDoors(t, { provider, limits: hasty });
  const { json: opened } = await openEscrow(service, platform, await file());
  assert.equal(opened.nextAction.url, nextActionUrl);
  assert.equal((await refundEscrow(service, platform, opened.escrowId)).json.code, 'PAYMENT_PENDING');
  assert.ok(!('nextAction' in (await getEscrow(service, platform, opened.escrowId)).json));
});
