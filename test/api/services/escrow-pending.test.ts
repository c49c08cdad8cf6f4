import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tester } from '../../support/audit-log.ts';
import {
  apiNames,
  apisOf,
  becomes,
  type EscrowApi,
  type EscrowResult,
  startApis,
} from '../../support/escrow-apis.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openTestProvider } from '../../support/simulator.ts';

/** Calls that time out at once, and recovery that does not wait. */
const limits = { answerTimeoutMs: 20, firstRetryMs: 10, longestRetryMs: 40, pollMs: 10 };

const provider = openTestProvider(fileScope);
const { service, apis, file, transfersOf } = await startApis(fileScope, { provider, limits });

function assertPending({ code, message, escrowId, retryAfter }: EscrowResult, of?: string): void {
  assert.equal(code, 'PAYMENT_PENDING', message);
  assert.match(escrowId, /^ES-\d{4}-[0-9A-Z]{4}$/);
  if (of !== undefined) assert.equal(escrowId, of);
  assert.match(retryAfter ?? '', /^[1-9]\d*$/);
}

/** Opens a FROZEN order, even if the response of the provider is late. */
async function openFrozen(api: EscrowApi, filingNo: string): Promise<EscrowResult> {
  const { escrowId } = await api.open(filingNo);
  return becomes(api, escrowId, 'FROZEN');
}

/** The ids of the instructions of these kinds. Each instruction has one id, however often it is sent. */
const idsOf = (escrowId: string, kind: string) =>
  new Set(
    provider
      .instructionsOf(escrowId)
      .filter((instruction) => instruction.kind === kind)
      .map(({ instructionId }) => instructionId),
  );

for (const name of apiNames) {
  const api = apis[name];

  test(`${name}: an order without a response is UNPAID, and FROZEN once it is held`, async () => {
    provider.treat({ FREEZE: 'SILENT' });
    const filingNo = await file();
    const pending = await api.open(filingNo);
    assertPending(pending);
    const { escrowId } = pending;
    const unpaid = await api.get(escrowId);
    assert.deepEqual([unpaid.state, unpaid.pending, unpaid.history], ['UNPAID', 'FREEZE', ['UNPAID']]);
    const second = await api.open(filingNo);
    assert.deepEqual([second.code, second.escrowId], ['ESCROW_ACTIVE', escrowId]);
    provider.treat({ FREEZE: 'CONFIRMED' });
    const frozen = await becomes(api, escrowId, 'FROZEN');
    assert.deepEqual([frozen.pending, frozen.history], [undefined, ['UNPAID', 'FROZEN']]);
    assert.equal(idsOf(escrowId, 'FREEZE').size, 1);
  });
}

for (const [name, treatment, kind, verb, state, transfers] of [
  ['REST', 'LOST', 'RELEASE', 'release', 'RELEASED', 1],
  ['RPC', 'ANSWER_LOST', 'REFUND', 'refund', 'REFUNDED', 0],
] as const) {
  test(`${name}: a ${verb} whose request or response is lost (${treatment}) settles later, once`, async () => {
    const api = apis[name];
    const filingNo = await file();
    const { escrowId } = await openFrozen(api, filingNo);
    provider.treat({ [kind]: treatment });
    provider.treatLookUps({ kind: 'SILENT' });
    for (const _ of ['first', 'second']) assertPending(await api[verb](escrowId), escrowId);
    const conflict = await api[verb === 'release' ? 'refund' : 'release'](escrowId);
    assert.equal(conflict.code, 'ESCROW_STATE_CONFLICT');
    assert.match(conflict.message, new RegExp(`${kind} of ${escrowId} is under way`));
    const frozen = await api.get(escrowId);
    assert.deepEqual([frozen.state, frozen.pending], ['FROZEN', kind]);
    provider.treatLookUps({ kind: 'NONE' });
    provider.treat({ [kind]: 'CONFIRMED' });
    const settled = await becomes(api, escrowId, state);
    assert.deepEqual([settled.pending, settled.history], [undefined, ['UNPAID', 'FROZEN', state]]);
    assert.equal(await transfersOf(filingNo), transfers);
    assert.equal(idsOf(escrowId, kind).size, 1);
  });
}

test('the order of a suspended platform settles too', async () => {
  const suspended = await apisOf(service, await service.platform());
  provider.treat({ FREEZE: 'SILENT' });
  const { escrowId } = await suspended.apis.REST.open(await suspended.file());
  const name = suspended.platform.caller;
  await service.execute({ kind: 'SetPlatformStatus', by: tester, name, status: 'SUSPENDED' });
  assert.equal((await suspended.apis.REST.get(escrowId)).code, 'KEY_SUSPENDED');
  provider.treat({ FREEZE: 'CONFIRMED' });
  await becomes(apis.RPC, escrowId, 'FROZEN');
});
