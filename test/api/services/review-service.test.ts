import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toJson } from '@bufbuild/protobuf';
import { Escrow_State } from '../../../gen/artseal/v1/escrow_pb.ts';
import { DecideOrderRequest_Decision as Decision, OrderSchema } from '../../../gen/artseal/v1/review_pb.ts';
import { escrowIdIn, fileArtwork, openEscrow } from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider, type Report } from '../../support/simulator.ts';
import { typedError } from '../../support/typed-clients.ts';

const { LOOK_AGAIN, ACCEPT, RETURN, STOP, CLOSE, DECISION_UNSPECIFIED } = Decision;
const { FROZEN, CLOSED } = Escrow_State;

/** Reports one unit less than is held. */
const oneMissing: Report = (_, payment) =>
  payment.amount === undefined ? payment : { ...payment, amount: payment.amount - 1n };

const provider = openTestProvider(fileScope);
// The server reads the due orders once an hour, so it carries out only decisions that it is notified of.
const service = await startService(fileScope, { provider, limits: { pollMs: 3_600_000 } });
const platform = await service.platform();
const { admin, review } = await service.operator();

const reason = 'agreed with the gallery';
const evidence = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const open = async () => openEscrow(service, platform, (await fileArtwork(service, platform)).json.filingNo);

/** Opens an order that needs review, since the provider holds one unit less. */
async function openInReview(): Promise<string> {
  provider.report(oneMissing);
  return escrowIdIn(await open());
}

const orderOf = async (escrowId: string) =>
  (await review.listOrders({ pageSize: 100 })).orders.find(({ escrow }) => escrow?.escrowId === escrowId);

const becomes = (escrowId: string, state: Escrow_State) =>
  eventually(`${escrowId} is in state ${state}`, 60_000, async () => {
    const order = await orderOf(escrowId);
    return order?.escrow?.state === state && order.review === undefined;
  });

/** The audit entries of an order, newest first. */
const entriesOf = async (escrowId: string) =>
  (await admin.listAuditLog({ pageSize: 100 })).entries.filter(({ subject }) => subject === escrowId);

test('an order in review is listed, and a decision is carried out at once', async () => {
  const escrowId = await openInReview();
  const inReview = async () =>
    (await review.listOrders({ needsReview: true })).orders.find(
      ({ escrow }) => escrow?.escrowId === escrowId,
    );
  const listed = (await inReview()) ?? assert.fail('it is not listed');
  const asJson = toJson(OrderSchema, listed);
  assert.partialDeepStrictEqual(asJson, {
    escrow: { escrowId, state: 'UNPAID', caller: platform.caller, amount: '128000000', currency: 'CNY' },
    underWay: [{ kind: 'FREEZE', status: 'SENT' }],
  });
  assert.match(listed.review ?? '', /128000000 CNY.*127999999 CNY/);
  assert.match(listed.reference ?? '', /^sim-hold-/);

  const { order } = await review.decideOrder({ escrowId, decision: RETURN, reason });
  assert.equal(order?.review, undefined);
  assert.partialDeepStrictEqual(toJson(OrderSchema, order ?? assert.fail('no order')), {
    escrow: { escrowId, state: 'UNPAID', pending: 'REFUND' },
    underWay: [
      { kind: 'FREEZE', status: 'SENT' },
      { kind: 'CANCEL', status: 'PREPARED' },
    ],
  });
  await becomes(escrowId, CLOSED);
  assert.equal(await inReview(), undefined);
});

test('an ended order is looked up once more', async () => {
  const escrowId = await openInReview();
  const lookUps = () => provider.lookUps.filter((order) => order.escrowId === escrowId).length;
  const before = lookUps();
  provider.report();
  await review.endOrder({ escrowId, end: CLOSED, evidence, reason });
  await eventually('it is looked up', 60_000, () => lookUps() > before);
  // The provider holds the money of an order that is CLOSED, and has to return it.
  await eventually('it is returned', 60_000, () => provider.statusOf(escrowId) === 'RETURNED');
});

test('a request that breaks a rule names its fields, and changes nothing', async () => {
  const escrowId = await openInReview();
  const decisions: readonly (readonly [request: object, message: RegExp])[] = [
    [{ reason }, /^decision must be LOOK_AGAIN or ACCEPT or RETURN or STOP or CLOSE$/],
    [{ decision: DECISION_UNSPECIFIED, reason }, /^decision must be LOOK_AGAIN/],
    [{ decision: 6, reason }, /^decision must be LOOK_AGAIN/],
    [{ decision: ACCEPT }, /^reason is required: 1 to 500 characters$/],
  ];
  for (const [request, message] of decisions) {
    const call = review.decideOrder({ escrowId, ...request });
    assert.match((await typedError(call, 'VALIDATION_FAILED')).message, message);
  }
  const end = CLOSED;
  const noHash = /^evidence must be a SHA-256: 64 lower-case hex digits$/;
  const ends: readonly (readonly [request: object, message: RegExp])[] = [
    [{ evidence, reason }, /^end must be RELEASED or REFUNDED or CLOSED$/],
    [{ end: FROZEN, evidence, reason }, /^end must be RELEASED/],
    [{ end, reason }, noHash],
    [{ end, evidence: evidence.toUpperCase(), reason }, noHash],
    [{ end, evidence: `${evidence}\n`, reason }, noHash],
    [{ end, evidence: evidence.slice(1), reason }, noHash],
    [{ end, evidence }, /^reason is required/],
  ];
  for (const [request, message] of ends) {
    const call = review.endOrder({ escrowId, ...request });
    assert.match((await typedError(call, 'VALIDATION_FAILED')).message, message);
  }
  assert.deepEqual(await entriesOf(escrowId), []);
  assert.notEqual((await orderOf(escrowId))?.review, undefined);
  const wrong = { state: 9 as Escrow_State };
  const { message } = await typedError(review.listOrders(wrong), 'VALIDATION_FAILED');
  assert.match(message, /^state must be UNPAID or FROZEN or/);
});

test('a decision that is repeated under its key does nothing and returns the stored result, also after the order changed', async () => {
  const escrowId = await openInReview();
  const headers = { 'Idempotency-Key': 'decide' };
  const lookUps = () => provider.lookUps.filter((order) => order.escrowId === escrowId).length;
  const decide = (decision: Decision) => review.decideOrder({ escrowId, decision, reason }, { headers });
  const first = await decide(LOOK_AGAIN);
  // The difference is still there, so the order is in review again.
  await eventually('it is in review', 60_000, async () => (await orderOf(escrowId))?.review !== undefined);
  const seen = lookUps();
  assert.equal(seen, 1);
  assert.deepEqual(await decide(LOOK_AGAIN), first);
  await typedError(decide(CLOSE), 'IDEMPOTENCY_KEY_REUSED');
  await typedError(review.decideOrder({ escrowId, decision: STOP, reason }), 'ESCROW_STATE_CONFLICT');
  assert.equal((await entriesOf(escrowId)).length, 1);
  assert.notEqual((await orderOf(escrowId))?.review, undefined);
  // A look-up of another order shows that the due orders were read since, and this order was not among them.
  const other = await openInReview();
  await review.decideOrder({ escrowId: other, decision: ACCEPT, reason });
  await becomes(other, FROZEN);
  assert.equal(lookUps(), seen);
});
