import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { typedClients } from '../../support/typed-clients.ts';

const service = await startService(fileScope);
const transport = createTypedTransport(service.internalUrl, await service.token());
const { filings, escrows } = typedClients(transport);

const termsFor = (filingNo: string) => ({
  ...escrowTerms(filingNo),
  type: Escrow_Type.GUARANTEE,
  amount: 5n,
});

test('an internal system reads, lists and sells what platforms filed', async () => {
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  const { filing } = await filings.getFiling({ filingNo });
  assert.equal(filing?.caller, platform.caller);
  const { escrow } = await escrows.getEscrow({ escrowId });
  const { $typeName, timestamp, history, holdExpiresAt, ...shown } = escrow ?? assert.fail();
  assert.ok(Date.parse(holdExpiresAt ?? '') > Date.parse(timestamp));
  assert.deepEqual(shown, {
    ...escrowTerms(filingNo),
    escrowId,
    state: Escrow_State.FROZEN,
    clearing: 'LICENSED_PSP_NO_SECOND_CLEARING',
    amount: BigInt(escrowTerms(filingNo).amount),
    currency: 'CNY',
    type: Escrow_Type.GUARANTEE,
    caller: platform.caller,
  });
  assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);
  assert.deepEqual(
    history.map(({ state }) => state),
    [Escrow_State.UNPAID, Escrow_State.FROZEN],
  );
  assert.equal(history[0]?.at, timestamp);
  assert.deepEqual((await filings.listFilings({ pageSize: 1 })).filings, [filing]);
  assert.deepEqual((await escrows.listEscrows({ pageSize: 1 })).escrows, [escrow]);
  const other = (await fileArtwork(service, platform)).json;
  assert.equal((await escrows.createEscrow(termsFor(other.filingNo))).state, Escrow_State.FROZEN);
});
