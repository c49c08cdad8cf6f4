import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { typedClients } from '../../support/typed-clients.ts';
import { transports } from './transports.ts';

const service = await startService(fileScope);
const token = await service.token();

for (const [name, transport] of Object.entries(transports)) {
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

test('an internal system reads and lists what platforms filed and sold', async () => {
  const { filings, escrows } = await service.clients();
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
});
