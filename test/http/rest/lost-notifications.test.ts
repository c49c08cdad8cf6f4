import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork, openEscrow, releaseEscrow } from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const timeoutMs = 60_000;

test('a look-up finds a dispute whose notifications were lost while the service was down', async (t) => {
  const provider = openTestProvider(t);
  // Looks up all RELEASED orders each minute, for the first time at the start.
  const options = { provider, dataDir: temporaryFolder(t), limits: { releasedLookUpMs: 60_000 } };
  const before = await startService(t, options);
  const gallery = await before.platform();
  const { filingNo } = (await fileArtwork(before, gallery)).json;
  const { escrowId } = (await openEscrow(before, gallery, filingNo)).json;
  assert.equal((await releaseEscrow(before, gallery, escrowId)).status, 200);
  await before.close();

  provider.report((_, truth) => ({ ...truth, status: 'DISPUTED' }));
  const service = await startService(t, options);
  const read = async (target: string) => (await send(service.publicUrl, gallery, { target })).json;
  const order = await eventually('the dispute is in the history', timeoutMs, async () => {
    const found = await read(`/api/v1/escrow/${escrowId}`);
    return found.history.length > 3 && found;
  });
  const { at, ...last } = order.history.at(-1);
  assert.deepEqual([order.state, last], ['RELEASED', { state: 'RELEASED', payment: 'DISPUTED' }]);
  assert.match(at, /^\d{4}-/);
  const { events } = await read('/api/v1/events');
  const types = events.map(({ type }: { type: string }) => type).slice(-3);
  assert.deepEqual(types, ['provenance.transferred', 'escrow.payment_disputed', 'escrow.in_review']);
});
