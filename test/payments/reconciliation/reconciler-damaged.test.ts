import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { terms } from '../../store/promises/fixtures.ts';
import { forgeIn } from '../../support/forging.ts';
import { type Kit, kitLimits, openKit } from './kit.ts';

const attempts = 6;
const allAttemptsMs = 2 * attempts * kitLimits.longestRetryMs;

/** Sells what was sold before once more; the order, which is FROZEN. */
async function sellAgain(kit: Kit, filingNo: string): Promise<string> {
  const { callerId, caller } = kit.platform;
  const at = { atMs: kit.clock.nowMs(), timestamp: '2026-11-21T12:00:00+00:00' };
  const { order } = await kit.execute({
    ...{ kind: 'OpenEscrow', terms: terms(filingNo), violations: [] },
    ...{ parties: undefined, at, work: { callerId, caller, instructionId: 'again' }, owner: undefined },
  });
  await kit.pass(kitLimits.longestRetryMs);
  return order.escrowId;
}

/** Takes the TRANSFER records away; the returned function puts them back. */
function takeTransfers({ dataDir }: Kit): () => void {
  const file = join(dataDir, 'artseal.db');
  forgeIn(file, (client) => {
    client.exec('CREATE TABLE taken AS SELECT * FROM provenance_record; DELETE FROM provenance_record');
  });
  return () =>
    forgeIn(file, (client) => {
      client.exec('INSERT INTO provenance_record SELECT * FROM taken; DROP TABLE taken');
    });
}

test('a release that a missing record prevents from being stored is sent once, and stored when the record is back', async (t) => {
  const kit = await openKit(t, { attemptsMax: attempts });
  const first = await kit.open();
  await kit.resolve('RELEASE', first);
  const { filingNo } = (await kit.case(first)).order;
  const escrowId = await sellAgain(kit, filingNo);
  // Prepared while the records are whole: after that it would be refused.
  const { callerId, caller } = kit.platform;
  await kit.execute({
    ...{ kind: 'PrepareResolution', resolution: 'RELEASE', escrowId, owner: undefined },
    at: { atMs: kit.clock.nowMs(), timestamp: '2026-11-21T12:00:00+00:00' },
    work: { callerId, caller, instructionId: 'release again' },
  });
  const putBack = takeTransfers(kit);
  const settled = kit.logged.filter(({ msg }) => msg === 'an order settled').length;
  await kit.pass(allAttemptsMs);
  const found = await kit.case(escrowId);
  assert.equal(found.order.state, 'FROZEN');
  assert.match(
    found.review ?? '',
    new RegExp(`^Its records are damaged: ${filingNo} is not what was recorded: `),
  );
  assert.equal(kit.logged.filter(({ msg }) => msg === 'an order settled').length, settled);

  // As the reason before asked of an operator: the money is not given back a second time.
  await kit.decide(escrowId, 'RETURN');
  await kit.pass(allAttemptsMs);
  putBack();
  await kit.decide(escrowId, 'LOOK_AGAIN');
  await kit.pass(kitLimits.longestRetryMs);
  await kit.assertSettled(escrowId, 'RELEASED');
  const given = kit.provider.instructions.filter((one) => one.escrowId === escrowId);
  assert.deepEqual(
    given.map(({ kind }) => kind),
    ['FREEZE', 'RELEASE'],
  );
  assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED', 'TRANSFER', 'TRANSFER']);
  const { events } = await kit.execute({
    kind: 'ReadEvents',
    callerId: kit.platform.callerId,
    after: undefined,
  });
  const types = events.filter((event) => event.escrowId === escrowId).map(({ type }) => type);
  assert.equal(types.filter((type) => type === 'escrow.released').length, 1);
});
