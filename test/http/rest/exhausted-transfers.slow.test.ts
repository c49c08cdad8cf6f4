import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { askProvenance, fileArtwork, openEscrow } from '../../support/calls.ts';
import { assertRejected } from '../../support/rejected.ts';
import { escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { writeTransfers } from '../../support/transfers.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

test('neither API opens an order for a filing with 10,000 transfers, and its provenance shows them all', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  await writeTransfers(service.dataDir, filingNo, 10_000);
  const answer = await openEscrow(service, platform, filingNo);
  assertRejected(answer, 409, 'TRANSFERS_EXHAUSTED', /10000 transfers/);
  const { escrows } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
  await typedError(escrows.createEscrow(terms), 'TRANSFERS_EXHAUSTED');
  const { records } = (await askProvenance(service, platform, filingNo)).json;
  assert.equal(records.length, 10_001);
});
