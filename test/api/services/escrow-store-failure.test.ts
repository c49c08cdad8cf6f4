import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { InstructionKind } from '../../../src/domain/escrow.ts';
import { onBadDisk } from '../../support/bad-disk.ts';
import { escrowIdIn, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { doorNames, type EscrowDoor, startDoors } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { assertRefused } from '../../support/rejected.ts';
import { openTestProvider } from '../../support/simulator.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
/** Recovery that does not wait, and timeout that outlasts the test. */
const limits = { firstRetryMs: 10, longestRetryMs: 40, pollMs: 10, answerTimeoutMs: 500 };

/** A service on a disk that can fail, whose provider keeps instructions of one kind back. */
async function startOnBadDisk(t: TestContext, kind: InstructionKind) {
  const provider = openTestProvider(t, { [kind]: 'KEPT_BACK' });
  const [all, disk] = await onBadDisk(t, () => startDoors(t, { provider, limits }));
  t.after(disk.heal);
  return { ...all, provider, disk };
}

const comesTo = (door: EscrowDoor, escrowId: string, state: string) =>
  eventually(`${escrowId} is ${state}`, timeoutMs, async () => {
    const now = await door.get(escrowId);
    return now.state === state && now;
  });

for (const name of doorNames) {
  for (const [how, failures] of [
    ['once', 1],
    ['until it is mended', Number.POSITIVE_INFINITY],
  ] as const) {
    test(`${name}: a hold that is not written down (fails ${how}) is pending, then FROZEN`, async (t) => {
      const { doors, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
      const opening = doors[name].open(await file());
      await provider.instructed('FREEZE');
      disk.failCommits(0, failures);
      await provider.answer();
      const pending = await opening;
      assert.ok(disk.failed() > 0);
      assert.equal(pending.code, 'PAYMENT_PENDING', pending.message);
      assert.match(pending.message, /of ES-\d{4}-[0-9A-Z]{4} is/);
      assert.match(pending.retryAfter ?? '', /^[1-9]\d*$/);
      disk.heal();
      const frozen = await comesTo(doors[name], pending.escrowId, 'FROZEN');
      assert.deepEqual(frozen.history, ['UNPAID', 'FROZEN']);
      assert.equal(provider.carriedOut('FREEZE'), 1);
    });

    for (const [kind, verb, state, transfers] of [
      ['RELEASE', 'release', 'RELEASED', 1],
      ['REFUND', 'refund', 'REFUNDED', 0],
    ] as const) {
      test(`${name}: a ${verb} not written down (fails ${how}) is pending, then ${state}`, async (t) => {
        const { doors, file, transfersOf, provider, disk } = await startOnBadDisk(t, kind);
        const filingNo = await file();
        const { escrowId } = await doors[name].open(filingNo);
        const resolving = doors[name][verb](escrowId);
        await provider.instructed(kind);
        disk.failCommits(0, failures);
        await provider.answer();
        const pending = await resolving;
        assert.ok(disk.failed() > 0);
        assert.equal(pending.code, 'PAYMENT_PENDING', pending.message);
        assert.equal(pending.escrowId, escrowId);
        disk.heal();
        const settled = await comesTo(doors[name], escrowId, state);
        assert.deepEqual(settled.history, ['UNPAID', 'FROZEN', state]);
        assert.deepEqual([provider.carriedOut(kind), await transfersOf(filingNo)], [1, transfers]);
      });
    }
  }

  for (const fails of ['before it is given', 'when it was given'] as const) {
    test(`${name}: a hold whose order cannot be read back ${fails} is pending, and never denied`, async (t) => {
      const { doors, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
      const filingNo = await file();
      if (fails === 'before it is given') disk.failReads();
      const opening = doors[name].open(filingNo);
      if (fails === 'when it was given') {
        await provider.instructed('FREEZE');
        disk.failReads();
        await provider.answer();
      }
      const pending = await opening;
      assert.ok(disk.failed() > 0);
      assert.equal(pending.code, 'PAYMENT_PENDING', pending.message);
      provider.treat({ FREEZE: 'CONFIRMED' });
      disk.heal();
      await comesTo(doors[name], pending.escrowId, 'FROZEN');
      assert.equal(provider.carriedOut('FREEZE'), 1);
    });
  }

  test(`${name}: an order that cannot be stored is not sent to the provider`, async (t) => {
    const { doors, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
    const filingNo = await file();
    disk.failCommits();
    const lost = await doors[name].open(filingNo);
    assert.equal(lost.code, 'UNAVAILABLE', lost.message);
    disk.heal();
    assert.equal(provider.instructions.length, 0);
    provider.treat({ FREEZE: 'CONFIRMED' });
    assert.equal((await doors[name].open(filingNo)).state, 'FROZEN', 'nothing was stored of it');
  });
}

for (const [what, kept] of [
  ['that the store cannot write down', 0],
  ['that is written down, though what follows is not,', 1],
  ['that is written down with what follows', 2],
] as const) {
  test(`REST: a hold under a key ${what} is never denied`, async (t) => {
    const { service, platform, doors, file, provider, disk } = await startOnBadDisk(t, 'FREEZE');
    const filingNo = await file();
    const headers = { 'Idempotency-Key': 'k' };
    const open = () => openEscrow(service, platform, filingNo, {}, { headers });
    const opening = open();
    await provider.instructed('FREEZE');
    disk.failCommits(kept);
    await provider.answer();
    const answer = await opening;
    disk.heal();
    const [order] = (
      await service.execute({
        kind: 'ListEscrows',
        filter: { owner: undefined, state: undefined, filingNo },
        page: { from: undefined, size: 1 },
      })
    ).items;
    const { escrowId } = order ?? assert.fail();
    if (answer.status !== 200) {
      assertRefused(answer, 503, 'PAYMENT_PENDING');
      assert.equal(escrowIdIn(answer), escrowId);
    }
    await comesTo(doors.REST, escrowId, 'FROZEN');
    const again = await open();
    assert.deepEqual([again.status, again.json.escrowId, again.json.state], [200, escrowId, 'FROZEN']);
    assert.equal(provider.instructions.length, 1);
    assert.equal((await releaseEscrow(service, platform, escrowId)).json.state, 'RELEASED');
  });
}
