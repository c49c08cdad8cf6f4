import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_State, Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { ProvenanceRecord_Event } from '../../../gen/artseal/v1/provenance_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { type ServiceOptions, startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { typedClients, typedRefusal } from '../../support/typed-clients.ts';

const painting = { ...artwork, price: BigInt(artwork.price) };

/** A service and the clients of an internal system. */
async function startWithClients(t: Parameters<typeof startService>[0], options: ServiceOptions = {}) {
  const service = await startService(t, options);
  const clients = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const file = async () => (await clients.filings.createFiling(painting)).filingNo;
  const order = async (parties: { buyerId?: string; sellerId?: string } = {}) => ({
    ...escrowTerms(await file()),
    type: Escrow_Type.GUARANTEE,
    amount: 5n,
    ...parties,
  });
  const transfersOf = async (filingNo: string) =>
    (await clients.provenance.getProvenance({ filingNo })).records.filter(
      ({ event }) => event === ProvenanceRecord_Event.TRANSFER,
    ).length;
  return { service, ...clients, file, order, transfersOf };
}

test('an internal system reads and lists what platforms filed and opened', async (t) => {
  const { service, filings, escrows } = await startWithClients(t);
  const platform = await service.platform();
  const post = (target: string, body: object) =>
    send(service.publicUrl, platform, { target, body: JSON.stringify(body) });
  const { filingNo } = (await post('/api/v1/filing', artwork)).json;
  const { escrowId } = (await post('/api/v1/escrow', escrowTerms(filingNo))).json;
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
  assert.deepEqual((await filings.listFilings({})).filings, [filing]);
  assert.deepEqual((await escrows.listEscrows({})).escrows, [escrow]);
});

test('an internal system opens an escrow for what a platform filed', async (t) => {
  const { service, escrows } = await startWithClients(t);
  const platform = await service.platform();
  const filed = await send(service.publicUrl, platform, {
    target: '/api/v1/filing',
    body: JSON.stringify(artwork),
  });
  const terms = { ...escrowTerms(filed.json.filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
  assert.equal((await escrows.createEscrow(terms)).state, Escrow_State.FROZEN);
});

test('lists are newest first, fifty a page unless asked otherwise', async (t) => {
  const { filings, file } = await startWithClients(t);
  for (let count = 0; count < 51; count += 1) await file();
  const numbers = ({ filings: shown }: Awaited<ReturnType<typeof filings.listFilings>>) =>
    shown.map(({ filingNo }) => Number(filingNo.slice(-6)));
  const descending = (from: number, to: number) =>
    Array.from({ length: from - to + 1 }, (_, place) => from - place);
  const first = await filings.listFilings({});
  assert.deepEqual(numbers(first), descending(51, 2));
  const last = await filings.listFilings({ pageToken: first.nextPageToken });
  assert.deepEqual([numbers(last), last.nextPageToken], [[1], '']);
  const all = await filings.listFilings({ pageSize: 100 });
  assert.deepEqual([numbers(all), all.nextPageToken], [descending(51, 1), '']);
  const some = await filings.listFilings({ pageSize: 3, pageToken: first.nextPageToken });
  assert.deepEqual(numbers(some), [1]);
});

test('escrows are listed newest first, page by page', async (t) => {
  const { escrows, order } = await startWithClients(t);
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    ids.unshift((await escrows.createEscrow(await order())).escrowId);
  }
  const first = await escrows.listEscrows({ pageSize: 2 });
  const second = await escrows.listEscrows({ pageSize: 2, pageToken: first.nextPageToken });
  const shown = [...first.escrows, ...second.escrows].map(({ escrowId }) => escrowId);
  assert.deepEqual(shown, ids);
  assert.equal(second.nextPageToken, '');
});

test('a page that cannot be is refused, naming what is wrong', async (t) => {
  const { filings, escrows } = await startWithClients(t);
  for (const list of [filings.listFilings, escrows.listEscrows]) {
    for (const pageSize of [-1, 101, 2 ** 31 - 1, -(2 ** 31)]) {
      const { message } = await typedRefusal(list({ pageSize }), 'VALIDATION_FAILED');
      assert.match(message, /^pageSize must be 1 to 100/);
    }
    for (const pageToken of ['x', 'YWZ0ZXI6', 'after:1', ' ', '\u0000']) {
      const { message } = await typedRefusal(list({ pageToken }), 'VALIDATION_FAILED');
      assert.match(message, /^pageToken must be/);
    }
  }
});

test('what is not there is not found', async (t) => {
  const { filings, provenance, escrows, file } = await startWithClients(t);
  const filingNo = await file();
  for (const unknown of ['', 'x', filingNo.toLowerCase(), ` ${filingNo}`, filingNo.replace('1', '2')]) {
    await typedRefusal(filings.getFiling({ filingNo: unknown }), 'FILING_NOT_FOUND');
    await typedRefusal(provenance.getProvenance({ filingNo: unknown }), 'FILING_NOT_FOUND');
  }
  for (const escrowId of ['', 'x', 'ES-2026-0000', filingNo]) {
    await typedRefusal(escrows.getEscrow({ escrowId }), 'ESCROW_NOT_FOUND');
    await typedRefusal(escrows.releaseEscrow({ escrowId }), 'ESCROW_NOT_FOUND');
  }
});

test('an artwork or an order that breaks rules is refused by the names of all its fields', async (t) => {
  const { filings, escrows } = await startWithClients(t);
  const bare = await typedRefusal(filings.createFiling({}), 'VALIDATION_FAILED');
  for (const field of Object.keys(artwork))
    assert.match(bare.message, new RegExp(`(^|; )${field} is required`));
  const terms = { filingNo: '', type: 9 as Escrow_Type, amount: 0n, buyerId: 'same', sellerId: 'same' };
  const { message } = await typedRefusal(escrows.createEscrow(terms), 'VALIDATION_FAILED');
  assert.deepEqual(
    message.split('; ').map((sentence) => sentence.split(' ')[0]),
    ['filingNo', 'type', 'amount', 'sellerId'],
  );
  for (const price of [2n ** 53n, 2n ** 63n - 1n, -1n]) {
    await typedRefusal(filings.createFiling({ ...painting, price }), 'VALIDATION_FAILED');
  }
  assert.deepEqual((await filings.listFilings({})).filings, []);
});

test('a filing has one open escrow at a time, and another one after its release', async (t) => {
  const { escrows, order, transfersOf } = await startWithClients(t);
  const terms = await order();
  const { escrowId } = await escrows.createEscrow(terms);
  await typedRefusal(escrows.createEscrow(terms), 'ESCROW_ACTIVE');
  const { escrow } = await escrows.releaseEscrow({ escrowId });
  assert.equal(escrow?.state, Escrow_State.RELEASED);
  assert.equal(await transfersOf(terms.filingNo), 1);
  const again = await escrows.createEscrow(terms);
  await escrows.releaseEscrow({ escrowId: again.escrowId });
  assert.equal(await transfersOf(terms.filingNo), 2);
});

test('a released escrow is not released again', async (t) => {
  const { escrows, order, transfersOf } = await startWithClients(t);
  const terms = await order();
  const { escrowId } = await escrows.createEscrow(terms);
  await escrows.releaseEscrow({ escrowId });
  for (let count = 0; count < 2; count += 1) {
    await typedRefusal(escrows.releaseEscrow({ escrowId }), 'ESCROW_STATE_CONFLICT');
  }
  assert.equal(await transfersOf(terms.filingNo), 1);
});

test('releases at once are answered alike, and the artwork is paid for and transferred once', async (t) => {
  const provider = openTestProvider(t, { RELEASE: 'KEPT_BACK' });
  const { escrows, order, transfersOf } = await startWithClients(t, { provider });
  const terms = await order();
  const { escrowId } = await escrows.createEscrow(terms);
  const releases = [1, 2, 3].map(() => escrows.releaseEscrow({ escrowId }));
  await provider.instructed('RELEASE');
  await provider.answer();
  const settled = await Promise.allSettled(releases);
  // One that came after the answer is refused, as any later release is.
  for (const result of settled) {
    if (result.status === 'rejected') {
      await typedRefusal(Promise.reject(result.reason), 'ESCROW_STATE_CONFLICT');
    } else assert.equal(result.value.escrow?.state, Escrow_State.RELEASED);
  }
  assert.ok(settled.some(({ status }) => status === 'fulfilled'));
  const given = provider.instructions.filter(({ kind }) => kind === 'RELEASE');
  assert.deepEqual([given.length, provider.carriedOut('RELEASE')], [1, 1]);
  assert.equal(await transfersOf(terms.filingNo), 1);
  assert.equal((await escrows.getEscrow({ escrowId })).escrow?.state, Escrow_State.RELEASED);
});

test('of orders opened at once for one filing one is frozen, and the provider hears of no other', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const { escrows, order } = await startWithClients(t, { provider });
  const terms = await order();
  const opened = Promise.allSettled([1, 2, 3].map(() => escrows.createEscrow(terms)));
  await provider.instructed('FREEZE');
  await typedRefusal(escrows.createEscrow(terms), 'ESCROW_ACTIVE');
  await provider.answer();
  const settled = await opened;
  assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1);
  assert.equal((await escrows.listEscrows({})).escrows.length, 1);
});

test('a hold that the provider declines closes the order, and the work can be sold again', async (t) => {
  const { escrows, order } = await startWithClients(t);
  const terms = await order({ buyerId: 'sim-decline-1' });
  const { message } = await typedRefusal(escrows.createEscrow(terms), 'PAYMENT_DECLINED');
  const [closed] = (await escrows.listEscrows({})).escrows;
  assert.equal(closed?.state, Escrow_State.CLOSED);
  assert.match(message, new RegExp(closed?.escrowId ?? '-'));
  await typedRefusal(escrows.releaseEscrow({ escrowId: closed?.escrowId ?? '' }), 'ESCROW_STATE_CONFLICT');
  assert.equal((await escrows.createEscrow({ ...terms, buyerId: 'buyer-2' })).state, Escrow_State.FROZEN);
});

test('a payment that the provider declines leaves the order FROZEN and the artwork where it is', async (t) => {
  const { escrows, order, transfersOf } = await startWithClients(t);
  const terms = await order({ sellerId: 'sim-decline-1' });
  const { escrowId } = await escrows.createEscrow(terms);
  await typedRefusal(escrows.releaseEscrow({ escrowId }), 'PAYMENT_DECLINED');
  assert.equal((await escrows.getEscrow({ escrowId })).escrow?.state, Escrow_State.FROZEN);
  assert.equal(await transfersOf(terms.filingNo), 0);
});

test('silence of the provider changes no state: the order waits under its id', async (t) => {
  const { escrows, order, transfersOf } = await startWithClients(t, { limits: { answerTimeoutMs: 20 } });
  const unheld = await order({ buyerId: 'sim-silent-1' });
  const pending = await typedRefusal(escrows.createEscrow(unheld), 'PAYMENT_PENDING');
  const [waiting] = (await escrows.listEscrows({})).escrows;
  assert.equal(waiting?.state, Escrow_State.UNPAID);
  assert.match(pending.message, new RegExp(waiting?.escrowId ?? '-'));
  assert.match(pending.retryAfter ?? '', /^[1-9]\d*$/);
  await typedRefusal(escrows.createEscrow(unheld), 'ESCROW_ACTIVE');

  const unpaid = await order({ sellerId: 'sim-silent-1' });
  const { escrowId } = await escrows.createEscrow(unpaid);
  const { message } = await typedRefusal(escrows.releaseEscrow({ escrowId }), 'PAYMENT_PENDING');
  assert.match(message, new RegExp(escrowId));
  assert.equal((await escrows.getEscrow({ escrowId })).escrow?.state, Escrow_State.FROZEN);
  assert.equal(await transfersOf(unpaid.filingNo), 0);
});

test('a provider that fails has given no verdict, and its words reach no caller', async (t) => {
  const provider = openTestProvider(t, { RELEASE: 'KEPT_BACK' });
  const { escrows, order } = await startWithClients(t, { provider });
  const { escrowId } = await escrows.createEscrow(await order());
  const release = escrows.releaseEscrow({ escrowId });
  await provider.instructed('RELEASE');
  await provider.fail(new Error('connection to 10.0.0.7 lost'));
  const { message } = await typedRefusal(release, 'PAYMENT_PENDING');
  assert.ok(!message.includes('10.0.0.7'));
  assert.equal((await escrows.getEscrow({ escrowId })).escrow?.state, Escrow_State.FROZEN);
});
