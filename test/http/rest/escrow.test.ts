import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CreateEscrowRequest, EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import type { ServiceDependencies } from '../../../src/api/services/dependencies.ts';
import { createEscrowService } from '../../../src/api/services/escrow-service.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { fileArtwork, jsonWith, openEscrow } from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { apiError, assertRejected } from '../../support/rejected.ts';
import { requestReader } from '../../support/request-reader.ts';
import { escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';

const provider = openTestProvider(fileScope);
const service = await startService(fileScope, { provider });
const ledger = openLedger(fileScope, service);
const platform = await service.platform();

/** The number of a new filing of the platform. */
async function newFiling(by = platform): Promise<string> {
  return (await fileArtwork(service, by)).json.filingNo;
}

const open = (filingNo: string, terms: object = {}) => openEscrow(service, platform, filingNo, terms);

/** Asserts that a call is rejected and opens nothing. */
async function assertNotOpened(
  call: () => Promise<RestAnswer>,
  status: number,
  code: Reason,
  ...message: RegExp[]
): Promise<void> {
  const before = ledger.holdings();
  assertRejected(await call(), status, code, ...message);
  assert.deepEqual(ledger.holdings(), before);
}

test('an escrow for an unknown filing is rejected, in whatever form its number is', async () => {
  for (const filingNo of ['AS-2026-999999', '\u0000', '\ud800', 'a'.repeat(50_000)]) {
    await assertNotOpened(() => open(filingNo), 404, 'FILING_NOT_FOUND', /filingNo/);
  }
});

test("an escrow for another platform's filing is rejected", async () => {
  const foreign = await newFiling(await service.platform());
  await assertNotOpened(() => open(foreign), 403, 'PERMISSION_DENIED', /filed/);
});

const read = requestReader(EscrowService, createEscrowService({} as ServiceDependencies));
const readTerms = (body: string) => read('POST', '/api/v1/escrow', body) as CreateEscrowRequest;
const terms = escrowTerms('AS-2026-000001');
const wholeNumber = /^amount must be a whole number of minor units \(fen, cents\)/;
const upToMax = /^amount must be a whole number of minor units \(fen, cents\) .*9007199254740991$/;

/** JSON of members that break a rule; undefined leaves the member out. */
const wrongTerms: readonly (readonly [field: string, message: RegExp, ...json: (string | undefined)[]])[] = [
  ['filingNo', /^filingNo is required/, undefined, '""'],
  ['filingNo', /^filingNo must be a string/, 'null', '1'],
  [
    ...(['type', /^type must be GUARANTEE$/, undefined, 'null', '""', '"guarantee"'] as const),
    ...['"DIRECT"', '"TYPE_UNSPECIFIED"', '1', '["GUARANTEE"]'],
  ],
  ['amount', /^amount .* from 1 to 9007199254740991$/, undefined, '0', '-0', '-1'],
  ['amount', wholeNumber, '1.5', '"1"'],
  ['amount', upToMax, '9007199254740992', '9007199254740993', '1e400'],
  ['buyerId', /^buyerId is required: 1 to 128/, undefined, '""'],
  ['buyerId', /^buyerId must have 1 to 128/, `"${'🖌'.repeat(129)}"`],
  ['buyerId', /^buyerId .*white space/, '" "'],
  ['buyerId', /^buyerId .*control/, '"a\\tb"'],
  ['buyerId', /^buyerId .*surrogate/, '"\\udc00"'],
  ['buyerId', /^buyerId must be a string/, '7'],
  ['sellerId', /^sellerId is required: 1 to 128/, undefined],
  ['sellerId', /^sellerId must be a string/, 'null'],
  ['sellerId', /^sellerId must have 1 to 128/, `"${'s'.repeat(129)}"`],
  ['sellerId', /^sellerId must differ from buyerId$/, '"buyer-1"'],
  ['buyer_id', /^buyer_id is not part of this request$/, '"b"'],
  ['state', /^state is not part of this request$/, '"FROZEN"'],
  ['escrowId', /^escrowId is not part of this request$/, '"ES-2026-0000"'],
];

for (const [field, message, ...values] of wrongTerms) {
  test(`an invalid ${field} is rejected: ${message.source}`, () => {
    for (const json of values) {
      const body =
        json === undefined ? JSON.stringify({ ...terms, [field]: undefined }) : jsonWith(terms, field, json);
      assert.throws(() => readTerms(body), apiError('VALIDATION_FAILED', message), json);
    }
  });
}

test('invalid terms get 400 over REST and open nothing; the largest amount is returned as a number', async () => {
  const filingNo = await newFiling();
  await assertNotOpened(() => open(filingNo, { amount: 0 }), 400, 'VALIDATION_FAILED', /^amount /);
  const { text } = await open(filingNo, { amount: Number.MAX_SAFE_INTEGER });
  assert.match(text, /"amount":9007199254740991}$/);
});

test('the provider gets the terms as sent once the order is stored; its error is not shown', async () => {
  provider.treat({ FREEZE: 'KEPT_BACK' });
  const { escrows } = ledger.holdings();
  const sent = provider.instructions.length;
  const parties = { amount: 7, buyerId: ' Käufer\u00a0', sellerId: '卖方' };
  const opening = open(await newFiling(), parties);
  await eventually('the provider has the FREEZE', 60_000, () => provider.instructions.length > sent);
  assert.equal(ledger.holdings().escrows, escrows + 1, 'sent before the order was on disk');
  await provider.fail(new Error('account 4711 at bank.example'));
  provider.treat({ FREEZE: 'CONFIRMED' });
  const pending = await opening;
  const { holdId, instructionId, openedAtMs, escrowId, ...rest } =
    provider.instructions[sent] ?? assert.fail();
  assertRejected(pending, 503, 'PAYMENT_PENDING', new RegExp(escrowId));
  assert.doesNotMatch(pending.text, /4711|bank/);
  const unknown = { reference: undefined, buyer: undefined, seller: undefined };
  assert.deepEqual(rest, { kind: 'FREEZE', ...parties, amount: 7n, currency: 'CNY', ...unknown });
  assert.equal(holdId, instructionId);
  assert.ok(openedAtMs <= Date.now());
});
