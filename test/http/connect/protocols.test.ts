import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { Filing_Status } from '../../../gen/artseal/v1/filing_pb.ts';
import { ProvenanceRecord_Event } from '../../../gen/artseal/v1/provenance_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';
import { transports } from './transports.ts';

const service = await startService(fileScope);
const token = await service.token();

for (const [name, transport] of Object.entries(transports)) {
  test(`an internal system files, sells and reads provenance: ${name}`, async () => {
    const { filings, escrows, provenance } = typedClients(transport(service.internalUrl, token));
    const price = BigInt(Number.MAX_SAFE_INTEGER);
    const filed = await filings.createFiling({ ...artwork, author: '齐白石 \u{1F58C}', price });
    assert.match(filed.filingNo, /^AS-\d{4}-\d{6}$/);
    assert.equal(filed.status, Filing_Status.SUBMITTED);
    const { filing } = await filings.getFiling({ filingNo: filed.filingNo });
    assert.equal(filing?.author, '齐白石 \u{1F58C}');
    assert.equal(filing?.price, price);
    assert.equal(filing?.hash, filed.hash);

    const { amount, ...terms } = escrowTerms(filed.filingNo);
    const order = { ...terms, type: Escrow_Type.GUARANTEE, amount: BigInt(amount) };
    const { escrowId, state } = await escrows.createEscrow(order);
    assert.equal(state, Escrow_State.FROZEN);
    const { escrow } = await escrows.releaseEscrow({ escrowId });
    assert.equal(escrow?.state, Escrow_State.RELEASED);

    const { records, retentionYears } = await provenance.getProvenance({ filingNo: filed.filingNo });
    assert.deepEqual(
      records.map(({ event }) => event),
      [ProvenanceRecord_Event.SUBMITTED, ProvenanceRecord_Event.TRANSFER],
    );
    assert.equal(retentionYears, 5);
  });

  test(`an error has its status code, its reason and the request id: ${name}`, async () => {
    const { filings } = typedClients(transport(service.internalUrl, token));
    await typedError(filings.getFiling({ filingNo: 'AS-1999-000001' }), 'FILING_NOT_FOUND');
    const { message } = await typedError(
      filings.createFiling({ ...artwork, price: -1n }),
      'VALIDATION_FAILED',
    );
    assert.match(message, /^price must be a whole number of minor units \(fen, cents\) from 0/);
    const unknown = typedClients(transport(service.internalUrl, 'it_sandbox_unknown'));
    await typedError(unknown.filings.listFilings({}), 'AUTH_HEADER_INVALID');
  });

  test(`every response has a request id of its own: ${name}`, async () => {
    const { filings } = typedClients(transport(service.internalUrl, token));
    const ids: (string | null)[] = [];
    const onHeader = (headers: Headers) => ids.push(headers.get('X-Request-Id'));
    for (let call = 0; call < 3; call += 1) {
      await filings.listFilings({}, { onHeader, headers: { 'X-Request-Id': 'mine' } });
    }
    assert.equal(new Set(ids).size, 3);
    for (const id of ids) assert.match(id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });
}

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
