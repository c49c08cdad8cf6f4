import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getEscrow, openEscrow, refundEscrow } from '../../support/calls.ts';
import { apiNames, startApis } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openTestProvider, type Report } from '../../support/simulator.ts';

const awaitingBuyer: Report = () => ({ status: 'AWAITING_BUYER', nextActionUrl: 'https://bank.example/1' });

const provider = openTestProvider(fileScope);
const { service, platform, apis, file } = await startApis(fileScope, { provider, limits: { pollMs: 10 } });

for (const name of apiNames) {
  test(`${name}: a refund closes an order whose buyer has not acted, and the artwork can be sold again`, async () => {
    const api = apis[name];
    const filingNo = await file();
    provider.report((_, payment) => (payment.status === 'HELD' ? awaitingBuyer(_, payment) : payment));
    const { escrowId, state } = await api.open(filingNo);
    assert.equal(state, 'UNPAID');
    const closed = await api.refund(escrowId);
    assert.deepEqual([closed.state, closed.pending], ['CLOSED', undefined], closed.message);
    assert.deepEqual(closed.history, ['UNPAID', 'CLOSED']);
    assert.deepEqual(await api.get(escrowId), closed);
    for (const verb of ['refund', 'release'] as const) {
      assert.equal((await api[verb](escrowId)).code, 'ESCROW_STATE_CONFLICT');
    }
    const { events } = await service.execute({ kind: 'ReadAllEvents', after: undefined });
    const types = events.filter((event) => event.escrowId === escrowId).map(({ type }) => type);
    assert.deepEqual(types, ['escrow.closed']);
    provider.report();
    assert.equal((await api.open(filingNo)).state, 'FROZEN');
  });
}

test('if the provider declines the CANCEL, the refund is declined and the order needs review', async () => {
  provider.treat({ CANCEL: 'DECLINED' });
  provider.report(awaitingBuyer);
  const { escrowId } = await apis.RPC.open(await file());
  const declined = await apis.RPC.refund(escrowId);
  provider.report();
  provider.treat({ CANCEL: 'CONFIRMED' });
  assert.equal(declined.code, 'PAYMENT_DECLINED');
  assert.match(declined.message, new RegExp(`declined the REFUND of ${escrowId}`));
  assert.equal((await apis.RPC.get(escrowId)).state, 'UNPAID');
  const found = await service.execute({ kind: 'FindCase', escrowId });
  assert.match(found?.review ?? '', /declines to give back/);
});

test('a refund during the FREEZE gives the hold back and closes the order', async () => {
  provider.treat({ FREEZE: 'KEPT_BACK' });
  const filingNo = await file();
  const before = provider.instructions.length;
  const opening = openEscrow(service, platform, filingNo);
  await eventually('the provider has the FREEZE', 60_000, () => provider.instructions.length > before);
  const { escrowId } = provider.instructions.at(-1) ?? assert.fail();
  const refunding = refundEscrow(service, platform, escrowId);
  await eventually('the refund is stored', 60_000, async () => {
    const { json } = await getEscrow(service, platform, escrowId);
    return json.pending === 'REFUND';
  });
  await provider.answer();
  const [opened, refunded] = await Promise.all([opening, refunding]);
  assert.equal(opened.json.code, 'PAYMENT_PENDING');
  assert.deepEqual([refunded.status, refunded.json.state], [200, 'CLOSED']);
  const states = refunded.json.history.map(({ state }: { state: string }) => state);
  assert.deepEqual(states, ['UNPAID', 'CLOSED']);
  assert.equal(provider.statusOf(escrowId), 'RETURNED');
});
