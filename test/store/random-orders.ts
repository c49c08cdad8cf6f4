import { type EscrowState, escrowStates, isAfterPayout } from '../../src/domain/escrow.ts';
import { planUpdate } from '../../src/domain/order-update.ts';
import { instructionOutcomes, type PaymentSnapshot, type PaymentStatus } from '../../src/domain/payment.ts';
import { orderEnds } from '../../src/domain/resolution.ts';
import type { EscrowCase } from '../../src/store/reconciliation-commands.ts';
import type { Taken } from '../../src/store/store.ts';
import { neededNames } from './promises/fixtures.ts';
import type { Makers, World } from './random-world.ts';

const anyState = (world: World) => (world.oneIn(2) ? undefined : world.random.pick(escrowStates));
const escrowId = (world: World): string => world.named(world.orders);
const instructionId = (world: World): string => world.named(world.instructions);

/** Makes the commands about orders. */
export const orderMakers: Makers = {
  OpenEscrow: (world) => {
    const { random } = world;
    const work = world.work();
    const filingNo = world.filingNo();
    if (work === undefined || filingNo === '') return undefined;
    const filedBy = world.filings.find((each) => each.filingNo === filingNo)?.callerId;
    const terms = {
      ...{ filingNo, type: 'GUARANTEE' as const, amount: BigInt(1 + random.below(1_000_000)) },
      ...{ buyerId: world.partyId('buyer'), sellerId: world.partyId('seller') },
    };
    return {
      ...{ terms, at: world.time(), work, owner: random.pick([undefined, work.callerId, filedBy]) },
      violations: world.oneIn(20) ? [{ field: 'amount', rule: 'is odd' }] : [],
      parties: world.oneIn(5) ? neededNames : undefined,
    };
  },
  PrepareResolution: (world) => {
    const work = world.work();
    const resolution = world.random.pick(['RELEASE', 'RELEASE', 'REFUND'] as const);
    const owner = world.oneIn(2) ? undefined : work?.callerId;
    return work && { resolution, escrowId: escrowId(world), at: world.time(), work, owner };
  },
  GetEscrow: (world) => ({ escrowId: escrowId(world), owner: world.owner() }),
  ListEscrows: (world) => {
    const filingNo = world.oneIn(4) ? world.filingNo() : undefined;
    return { filter: { owner: world.owner(), state: anyState(world), filingNo }, page: world.page() };
  },
  FindInstruction: (world) => ({ instructionId: instructionId(world) }),
  RecordSent: (world) => {
    const found = world.known([...world.cases.values()]);
    const expectedLookUpAtMs = found?.lookUpAtMs;
    const { instructionId, status } = found?.open.at(-1) ?? {};
    if (instructionId === undefined || status === undefined) return undefined;
    return { instructionId, status, expectedLookUpAtMs, lookUpAtMs: world.nowMs() + 5_000 };
  },
  RecordUnanswered: (world) => {
    const found = world.known([...world.cases.values()]);
    if (found === undefined) return undefined;
    const [{ escrowId }, nowMs] = [found.order, world.nowMs()];
    const asked = { expectedLookUpAtMs: found.lookUpAtMs, notificationCount: world.random.below(2) };
    return { escrowId, ...asked, lookUpAtMs: nowMs + 9_000, nowMs };
  },
  FindCase: (world) => ({ escrowId: escrowId(world) }),
  UpdateOrder: (world) => {
    const found = world.known([...world.cases.values()]);
    return found && orderUpdate(world, found);
  },
  UseProvider: (world) => ({ name: world.random.pick(['simulated', 'stripe']) }),
  ResumeOpen: (world) => ({ nowMs: world.nowMs() }),
  ListDue: (world) => ({
    ...{ hasFailed: world.oneIn(2), nowMs: world.nowMs(), horizonMs: world.nowMs() + 86_400_000 },
    after: world.random.below(5),
    ...{ callers: 1 + world.random.below(4), perCaller: 1 + world.random.below(10) },
  }),
  ListReleased: (world) => {
    const shares = 1 + world.random.below(3);
    return { share: world.random.below(shares), shares, sinceMs: world.nowMs() - 40 * 86_400_000 };
  },
  TakeNotification: (world) => {
    const order = world.known([...world.cases.values()]);
    const about = world.random.pick([
      { holdId: order?.holdId ?? 'none' },
      { reference: order?.reference ?? 'none' },
      { buyer: { customer: `cus_${world.random.below(4)}` }, openedSinceMs: world.nowMs() - 9_000_000 },
    ]);
    return { eventId: `evt_${world.random.below(300)}`, about, nowMs: world.nowMs() };
  },
  Decide: (world) => ({
    ...{ by: world.by(), escrowId: world.inReview(), instructionId: world.id('ins'), nowMs: world.nowMs() },
    decision: world.random.pick(['LOOK_AGAIN', 'ACCEPT', 'RETURN', 'STOP'] as const),
  }),
  CloseOrder: (world) => ({ by: world.by(), escrowId: escrowId(world), at: world.time() }),
  EndOrder: (world) => ({
    ...{ by: world.by(), escrowId: world.inReview(), end: world.random.pick(orderEnds) },
    ...{ evidence: world.hex(64), at: world.time() },
  }),
  ListCases: (world) => ({
    ...{ selection: { state: anyState(world), needsReview: world.oneIn(2) }, page: world.page() },
  }),
};

/** Applies a provider status to an order as reconciliation would. */
function orderUpdate(world: World, found: EscrowCase): Taken<'UpdateOrder'> {
  const { order, open, accepted, review, notificationCount, lookUpAtMs: expectedLookUpAtMs } = found;
  const payment = paymentOf(world, found);
  const answered = world.oneIn(2) ? open.at(-1) : undefined;
  const afterPayout = order.history.findLast(isAfterPayout);
  const { state: from, escrowId, amount } = order;
  const plan = planUpdate(
    { state: from, amount, currency: 'CNY', accepted, afterPayout, isInReview: review !== undefined, open },
    payment,
    answered,
  );
  const until = { url: 'https://pay.example/1?a=b', untilMs: world.nowMs() + 60_000 };
  return {
    at: world.time(),
    update: {
      ...{ escrowId, from, to: plan.to, ended: plan.ended, resetsAttempts: plan.resetsAttempts },
      ...{ notificationCount, expectedLookUpAtMs, expectedChanges: order.history.length },
      ...{ afterPayout: plan.afterPayout, reference: payment.reference },
      holdExpiresAtMs: payment.holdExpiresAtMs,
      nextAction: plan.awaitsBuyer ? until : undefined,
      prepared: plan.givesBack ? { instructionId: world.id('ins'), kind: 'REFUND' } : undefined,
      review: plan.review === undefined ? undefined : { why: plan.review, found: payment },
      lookUpAtMs: plan.nextLookUp === 'NEVER' ? undefined : world.nowMs() + world.random.below(90_000),
    },
  };
}

const likelyStatuses: Readonly<Record<EscrowState, readonly PaymentStatus[]>> = {
  UNPAID: ['HELD', 'HELD', 'AWAITING_BUYER', 'VOID', 'ABSENT'],
  FROZEN: ['HELD', 'PAID_OUT', 'LAPSED'],
  RELEASED: ['PARTLY_RETURNED', 'DISPUTED', 'PAID_OUT'],
  REFUNDED: ['RETURNED'],
  CLOSED: ['VOID', 'HELD'],
};

const anyStatus = Object.keys(instructionOutcomes.FREEZE) as readonly PaymentStatus[];

function paymentOf(world: World, { order, open }: EscrowCase): PaymentSnapshot {
  const { random } = world;
  const kind = open.at(-1)?.kind;
  const asked = kind === 'RELEASE' ? 'PAID_OUT' : kind === 'REFUND' ? 'RETURNED' : undefined;
  const likely = asked !== undefined && !world.oneIn(4) ? asked : random.pick(likelyStatuses[order.state]);
  const status = world.oneIn(12) ? random.pick(anyStatus) : likely;
  return {
    ...{ status, amount: world.oneIn(15) ? 5n : order.amount, currency: 'CNY' },
    reference: world.oneIn(2) ? undefined : `pi_${order.escrowId}`,
    holdExpiresAtMs: world.oneIn(2) ? undefined : world.nowMs() + random.below(200_000_000),
    declined: world.oneIn(6) ? { code: 'no_funds', words: 'No funds.', detail: 'Funds: none' } : undefined,
  };
}
