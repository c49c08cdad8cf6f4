import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { InstructionKind } from '../../../src/domain/escrow.ts';
import { onBadDisk } from '../../support/bad-disk.ts';
import { escrowIdIn, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { becomes, startApis } from '../../support/escrow-apis.ts';
import { assertRejected } from '../../support/rejected.ts';
import { openTestProvider } from '../../support/simulator.ts';

/** Recovery that does not wait, and a timeout that outlasts the test. */
const limits = { firstRetryMs: 10, longestRetryMs: 40, pollMs: 10, answerTimeoutMs: 500 };

/** Starts a service on a disk that can fail, whose provider keeps instructions of one kind back. */
async function startOnBadDisk(t: TestContext, kind: InstructionKind) {
  const provider = openTestProvider(t, { [kind]: 'KEPT_BACK' });
  const [all, disk] = await onBadDisk(t, () => startApis(t, { provider, limits }));
  t.after(disk.heal);
  return { ...all, provider, disk };
}

for (const [name, verb, kind, state, failures, transfers] of [
  ['REST', 'open', 'FREEZE', 'FROZEN', 1, 0],
  ['REST', 'release', 'RELEASE', 'RELEASED', Number.POSITIVE_INFINITY, 1],
  ['RPC', 'refund', 'REFUND', 'REFUNDED', 1, 0],
] as const) {
  test(`${name}: ${verb} is pending if ${failures} commits of its end fail, then ${state}`, async (t) => {
    const { apis, file, transfersOf, provider, disk } = await startOnBadDisk(t, kind);
    const api = apis[name];
    const filingNo = await file();
    const calling = verb === 'open' ? api.open(filingNo) : api[verb]((await api.open(filingNo)).escrowId);
    await provider.instructed(kind);
    disk.failCommits(0, failures);
    await provider.answer();
    const pending = await calling;
    assert.ok(disk.failed() > 0);
    assert.equal(pending.code, 'PAYMENT_PENDING', pending.message);
    assert.match(pending.message, /of ES-\d{4}-[0-9A-Z]{4} is/);
    disk.heal();
    await becomes(api, pending.escrowId, state);
    assert.deepEqual([provider.carriedOut(kind), await transfersOf(filingNo)], [1, transfers]);
  });
}

for (const fails of ['before its FREEZE is sent', 'after it'] as const) {
  test(`an order that cannot be read back ${fails} is pending, and never declined`, async (t) => {
    const { apis, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
    const filingNo = await file();
    if (fails !== 'after it') disk.failReads();
    const opening = apis.REST.open(filingNo);
    if (fails === 'after it') {
      await provider.instructed('FREEZE');
      disk.failReads();
      await provider.answer();
    }
    const pending = await opening;
    assert.ok(disk.failed() > 0);
    assert.equal(pending.code, 'PAYMENT_PENDING', pending.message);
    provider.treat({ FREEZE: 'CONFIRMED' });
    disk.heal();
    await becomes(apis.REST, pending.escrowId, 'FROZEN');
    assert.equal(provider.carriedOut('FREEZE'), 1);
  });
}

test('an order that cannot be stored is not sent to the provider', async (t) => {
  const { apis, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
  const filingNo = await file();
  disk.failCommits();
  const lost = await apis.REST.open(filingNo);
  assert.equal(lost.code, 'UNAVAILABLE', lost.message);
  disk.heal();
  assert.equal(provider.instructions.length, 0);
  provider.treat({ FREEZE: 'CONFIRMED' });
  assert.equal((await apis.REST.open(filingNo)).state, 'FROZEN', 'nothing of it was stored');
});

for (const stored of [0, 1, 2]) {
  test(`a hold under a key is never declined if ${stored} commits after it succeed`, async (t) => {
    const { service, platform, apis, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
    const filingNo = await file();
    const headers = { 'Idempotency-Key': 'k' };
    const open = () => openEscrow(service, platform, filingNo, {}, { headers });
    const opening = open();
    await provider.instructed('FREEZE');
    disk.failCommits(stored);
    await provider.answer();
    const response = await opening;
    disk.heal();
    const [{ escrowId } = assert.fail()] = provider.instructions;
    if (response.status !== 200) {
      assertRejected(response, 503, 'PAYMENT_PENDING');
      assert.equal(escrowIdIn(response), escrowId);
    }
    await becomes(apis.REST, escrowId, 'FROZEN');
    const again = await open();
    assert.deepEqual([again.status, again.json.escrowId, again.json.state], [200, escrowId, 'FROZEN']);
    assert.equal(provider.instructions.length, 1);
    assert.equal((await releaseEscrow(service, platform, escrowId)).json.state, 'RELEASED');
  });
}
