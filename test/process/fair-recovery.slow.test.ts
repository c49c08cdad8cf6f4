import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork, openEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { assertRejected } from '../support/rejected.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched } from '../support/watched-command.ts';

/** Much longer than an order waits that does not wait for others, and much shorter than it would wait for them. */
const fairMs = 10_000;

test('150 orders without a response do not delay those of another platform', async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 2);
  const [silent = assert.fail(), fair = assert.fail()] = platforms;
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const opened = async () => {
    const { filingNo } = (await fileArtwork(service, silent)).json;
    assertRejected(
      await openEscrow(service, silent, filingNo, { buyerId: 'sim-silent' }),
      503,
      'PAYMENT_PENDING',
    );
  };
  await Promise.all(Array.from({ length: 150 }, opened));
  // The first may come before recovery has begun with those of the other platform.
  for (let count = 0; count < 3; count += 1) {
    const { filingNo } = (await fileArtwork(service, fair)).json;
    const pending = await openEscrow(service, fair, filingNo, { buyerId: 'sim-lost-answer' });
    assertRejected(pending, 503, 'PAYMENT_PENDING');
    const [escrowId = assert.fail()] = /ES-\d+-\w+/.exec(pending.json.message) ?? [];
    await eventually(`${escrowId} is FROZEN`, fairMs, async () => {
      const { json } = await send(service.publicUrl, fair, { target: `/api/v1/escrow/${escrowId}` });
      return json.state === 'FROZEN';
    });
  }
});
