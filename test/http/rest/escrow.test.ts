import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { askProvenance, fileArtwork, jsonWith, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRefused } from '../../support/rejected.ts';
import { escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { writeTransfers } from '../../support/transfers.ts';
import { typedClients, typedRefusal } from '../../support/typed-clients.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const platform = await service.platform();

/** The number of a new filing of the platform. */
async function newFiling(by = platform): Promise<string> {
  return (await fileArtwork(service, by)).json.filingNo;
}

const open = (filingNo: string, terms: object = {}) => openEscrow(service, platform, filingNo, terms);
const stateOf = async (escrowId: string) =>
  (await service.execute({ kind: 'GetEscrow', escrowId, owner: undefined }))?.state;

/** Asserts that a call is refused and opens nothing. */
async function assertNotOpened(
  call: () => Promise<RestAnswer>,
  status: number,
  code: Reason,
  ...message: RegExp[]
): Promise<void> {
  const before = ledger.holdings();
  assertRefused(await call(), status, code, ...message);
  assert.deepEqual(ledger.holdings(), before);
}

test('an escrow is answered FROZEN with exactly the documented members, in their order', async () => {
  const answer = await open(await newFiling());
  assert.equal(answer.status, 200, answer.text);
  const { escrowId, ...rest } = answer.json;
  assert.match(escrowId, /^ES-\d{4}-[0-9A-Z]{4}$/);
  assert.deepEqual(Object.keys(answer.json), ['escrowId', 'state', 'clearing', 'amount']);
  const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';
  assert.deepEqual(rest, { state: 'FROZEN', clearing, amount: 128_000_000 });
  assert.equal(await stateOf(escrowId), 'FROZEN');
});

for (const [json, amount] of [
  ['1', 1],
  ['1e3', 1_000],
  ['1000.0', 1_000],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
] as const) {
  test(`the amount ${json} is answered as the number ${amount}`, async () => {
    const body = jsonWith(escrowTerms(await newFiling()), 'amount', json);
    const answer = await openEscrow(service, platform, '', {}, { body });
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.text, new RegExp(`"amount":${amount}}$`));
  });
}

test('an escrow for a filing that is not there is refused, whatever its number looks like', async () => {
  for (const filingNo of [
    'AS-2026-999999',
    'as-2026-000001',
    'x',
    ' ',
    '\u0000',
    '\ud800',
    '石',
    'a'.repeat(50_000),
  ]) {
    await assertNotOpened(() => open(filingNo), 404, 'FILING_NOT_FOUND', /filingNo/);
  }
});

test("an escrow for another caller's filing is refused", async () => {
  const foreign = await newFiling(await service.platform());
  await assertNotOpened(() => open(foreign), 403, 'PERMISSION_DENIED', /filed/);
});

test('a filing has one open escrow at a time', async () => {
  const filingNo = await newFiling();
  assert.equal((await open(filingNo)).status, 200);
  await assertNotOpened(
    () => open(filingNo, { buyerId: 'buyer-2' }),
    409,
    'ESCROW_ACTIVE',
    new RegExp(filingNo),
  );
});

test('of fifty escrows for a filing at once exactly one is opened', async () => {
  const by = await service.platform();
  const filingNo = await newFiling(by);
  const { escrows } = ledger.holdings();
  const answers = await Promise.all(Array.from({ length: 50 }, () => openEscrow(service, by, filingNo)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  for (const answer of answers) if (answer.status !== 200) assertRefused(answer, 409, 'ESCROW_ACTIVE');
  assert.equal(ledger.holdings().escrows, escrows + 1);
});

const wrongTerms: readonly (readonly [field: string, json: string | undefined, message: RegExp])[] = [
  ['filingNo', undefined, /^filingNo is required/],
  ['filingNo', '""', /^filingNo is required/],
  ['filingNo', 'null', /^filingNo must be a string/],
  ['filingNo', '1', /^filingNo must be a string/],
  ['type', undefined, /^type must be GUARANTEE/],
  ['type', 'null', /^type must be GUARANTEE/],
  ['type', '""', /^type must be GUARANTEE/],
  ['type', '"guarantee"', /^type must be GUARANTEE/],
  ['type', '"DIRECT"', /^type must be GUARANTEE/],
  ['type', '"TYPE_UNSPECIFIED"', /^type must be GUARANTEE/],
  ['type', '1', /^type must be GUARANTEE/],
  ['type', '["GUARANTEE"]', /^type must be GUARANTEE/],
  ['amount', undefined, /^amount .* from 1 to 9007199254740991/],
  ['amount', '0', /^amount must be a whole number of minor units \(fen, cents\) from 1 to 9007199254740991/],
  ['amount', '-0', /^amount must be a whole number of minor units \(fen, cents\) from 1/],
  ['amount', '-1', /^amount must be a whole number of minor units \(fen, cents\) from 1/],
  ['amount', '1.5', /^amount must be a whole number of minor units/],
  ['amount', '"1"', /^amount must be a whole number of minor units/],
  [
    'amount',
    '9007199254740992',
    /^amount must be a whole number of minor units \(fen, cents\).*9007199254740991/,
  ],
  [
    'amount',
    '9007199254740993',
    /^amount must be a whole number of minor units \(fen, cents\).*9007199254740991/,
  ],
  ['amount', '1e400', /^amount must be a whole number of minor units \(fen, cents\).*9007199254740991/],
  ['buyerId', undefined, /^buyerId is required: 1 to 128/],
  ['buyerId', '""', /^buyerId is required: 1 to 128/],
  ['buyerId', `"${'🖌'.repeat(129)}"`, /^buyerId must have 1 to 128/],
  ['buyerId', '" "', /^buyerId .*white space/],
  ['buyerId', '"a\\tb"', /^buyerId .*control/],
  ['buyerId', '"\\udc00"', /^buyerId .*surrogate/],
  ['buyerId', '7', /^buyerId must be a string/],
  ['sellerId', undefined, /^sellerId is required: 1 to 128/],
  ['sellerId', 'null', /^sellerId must be a string/],
  ['sellerId', `"${'s'.repeat(129)}"`, /^sellerId must have 1 to 128/],
  ['sellerId', '"buyer-1"', /^sellerId must differ from buyerId$/],
  ['buyer_id', '"b"', /^buyer_id is not part of this request$/],
  ['state', '"FROZEN"', /^state is not part of this request$/],
  ['escrowId', '"ES-2026-0000"', /^escrowId is not part of this request$/],
];

for (const [field, json, message] of wrongTerms) {
  test(`an escrow is refused: ${field} ${json?.slice(0, 30) ?? 'missing'}`, async () => {
    const terms = escrowTerms(await newFiling());
    const body =
      json === undefined ? JSON.stringify({ ...terms, [field]: undefined }) : jsonWith(terms, field, json);
    const call = () => openEscrow(service, platform, '', {}, { body });
    await assertNotOpened(call, 400, 'VALIDATION_FAILED', message);
  });
}

test('party ids of 128 astral characters, and of one, are taken', async () => {
  for (const [buyerId, sellerId] of [
    ['🖌'.repeat(128), '石'.repeat(128)],
    ['b', 'B'],
    ['é', 'e\u0301'],
  ]) {
    assert.equal((await open(await newFiling(), { buyerId, sellerId })).status, 200);
  }
});

test('an order that the provider declines is CLOSED, and the work can be sold to another', async () => {
  const filingNo = await newFiling();
  const declined = await open(filingNo, { buyerId: 'sim-decline-1' });
  assertRefused(declined, 402, 'PAYMENT_DECLINED', /ES-\d{4}-[0-9A-Z]{4}\. The payment was declined\.$/);
  const [escrowId = ''] = /ES-\d{4}-[0-9A-Z]{4}/.exec(declined.json.message) ?? [];
  assert.equal(await stateOf(escrowId), 'CLOSED');
  assert.equal((await open(filingNo)).status, 200);
});

test('an order that the provider is silent about stays UNPAID and open, and is named', async (t) => {
  const impatient = await startService(t, { limits: { answerTimeoutMs: 20 } });
  const by = await impatient.platform();
  const { filingNo } = (await fileArtwork(impatient, by)).json;
  const pending = await openEscrow(impatient, by, filingNo, { buyerId: 'sim-silent-1' });
  assertRefused(pending, 503, 'PAYMENT_PENDING', /ES-\d{4}-[0-9A-Z]{4}/);
  assert.match(String(pending.headers['retry-after']), /^[1-9][0-9]*$/);
  const [escrowId = ''] = /ES-\d{4}-[0-9A-Z]{4}/.exec(pending.json.message) ?? [];
  const order = await impatient.execute({ kind: 'GetEscrow', escrowId, owner: undefined });
  assert.equal(order?.state, 'UNPAID');
  assertRefused(await openEscrow(impatient, by, filingNo), 409, 'ESCROW_ACTIVE');
});

test('a provider that fails is as one that is silent, and its words are not shown', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const failing = await startService(t, { provider });
  const by = await failing.platform();
  const { filingNo } = (await fileArtwork(failing, by)).json;
  const opening = openEscrow(failing, by, filingNo);
  await provider.instructed('FREEZE');
  await provider.fail(new Error('account 4711 at bank.example'));
  const pending = await opening;
  assertRefused(pending, 503, 'PAYMENT_PENDING', /ES-\d{4}-[0-9A-Z]{4}/);
  assert.doesNotMatch(pending.text, /4711|bank/);
});

test('the provider is instructed once an order is on disk, with the terms as sent and no more', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const instructed = await startService(t, { provider });
  const by = await instructed.platform();
  const { filingNo } = (await fileArtwork(instructed, by)).json;
  const terms = { amount: 7, buyerId: ' Käufer\u00a0', sellerId: '卖方' };
  const opening = openEscrow(instructed, by, filingNo, terms);
  await provider.instructed('FREEZE');
  assert.equal(openLedger(t, instructed).holdings().escrows, 1, 'instructed before the order was on disk');
  await provider.answer();
  const { escrowId } = (await opening).json;
  assert.equal(provider.instructions.length, 1);
  const [{ holdId, instructionId, openedAtMs, ...told } = assert.fail()] = provider.instructions;
  const unknown = { reference: undefined, buyer: undefined, seller: undefined };
  const expected = { kind: 'FREEZE', escrowId, ...terms, amount: 7n, currency: 'CNY', ...unknown };
  assert.deepEqual(told, expected);
  assert.equal(holdId, instructionId);
  assert.ok(openedAtMs <= Date.now());
});

test('opening an escrow leaves the provenance as it is', async () => {
  const filingNo = await newFiling();
  await open(filingNo);
  const { records } = (await askProvenance(service, platform, filingNo)).json;
  assert.deepEqual(
    records.map(({ event }: { event: string }) => event),
    ['SUBMITTED'],
  );
});

test('escrow ids do not repeat and do not count up', async () => {
  const by = await service.platform();
  const ids: string[] = [];
  for (let count = 0; count < 30; count += 1) {
    ids.push((await openEscrow(service, by, await newFiling(by))).json.escrowId);
  }
  assert.equal(new Set(ids).size, ids.length);
  assert.notDeepEqual(ids, ids.toSorted());
});

test('an artwork that was transferred 10,000 times is sold no more, at neither API', async () => {
  const filingNo = await newFiling();
  await writeTransfers(service.dataDir, filingNo, 10_000);
  const sell = () => open(filingNo);
  await assertNotOpened(sell, 409, 'TRANSFERS_EXHAUSTED', /10000 transfers/);
  const { escrows } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  const terms = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
  await typedRefusal(escrows.createEscrow(terms), 'TRANSFERS_EXHAUSTED');
  const { records } = (await askProvenance(service, platform, filingNo)).json;
  assert.equal(records.length, 10_001);
});
