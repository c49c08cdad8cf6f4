import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

const painting = { ...artwork, price: BigInt(artwork.price) };
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

test('escrows are listed newest first, page by page', async () => {
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const { filingNo } = await filings.createFiling(painting);
    ids.unshift((await escrows.createEscrow(termsFor(filingNo))).escrowId);
  }
  const first = await escrows.listEscrows({ pageSize: 2 });
  const second = await escrows.listEscrows({ pageSize: 1, pageToken: first.nextPageToken });
  const shown = [...first.escrows, ...second.escrows].map(({ escrowId }) => escrowId);
  assert.deepEqual(shown, ids);
});

test('a rejected filing or order names all fields that break a rule', async () => {
  const [newest] = (await filings.listFilings({ pageSize: 1 })).filings;
  const bare = await typedError(filings.createFiling({}), 'VALIDATION_FAILED');
  for (const field of Object.keys(artwork)) {
    assert.match(bare.message, new RegExp(`(^|; )${field} is required`));
  }
  const terms = { filingNo: '', type: 9 as Escrow_Type, amount: 0n, buyerId: 'same', sellerId: 'same' };
  const { message } = await typedError(escrows.createEscrow(terms), 'VALIDATION_FAILED');
  assert.deepEqual(
    message.split('; ').map((sentence) => sentence.split(' ')[0]),
    ['filingNo', 'type', 'amount', 'sellerId'],
  );
  for (const price of [2n ** 53n, 2n ** 63n - 1n, -1n]) {
    await typedError(filings.createFiling({ ...painting, price }), 'VALIDATION_FAILED');
  }
  assert.deepEqual((await filings.listFilings({ pageSize: 1 })).filings, [newest]);
});
