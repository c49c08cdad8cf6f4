import type { EscrowState, InstructionKind } from '../src/domain/escrow.ts';
import type { PaymentStatus } from '../src/domain/payment.ts';
import type { BookedOrder, Books, GivenOperation } from './books.ts';
import { checkLog } from './evidence.ts';
import { isDiffering, nameOf, namesIn, sellerId } from './parties.ts';
import { must } from './violation.ts';
import type { Witness } from './witness.ts';

/** The states that may follow each state. */
const nextStates: Readonly<Record<EscrowState, readonly EscrowState[]>> = {
  UNPAID: ['FROZEN', 'CLOSED'],
  FROZEN: ['RELEASED', 'REFUNDED', 'CLOSED'],
  RELEASED: [],
  REFUNDED: [],
  CLOSED: [],
};

/** The provider statuses that each state of an order allows during a run. The provider may be ahead of the order. */
const statuses: Readonly<Record<EscrowState, readonly PaymentStatus[]>> = {
  UNPAID: ['ABSENT', 'AWAITING_BUYER', 'VOID', 'HELD', 'RETURNED', 'LAPSED'],
  FROZEN: ['HELD', 'PAID_OUT', 'PARTLY_RETURNED', 'DISPUTED', 'RETURNED', 'LAPSED'],
  RELEASED: ['PAID_OUT', 'PARTLY_RETURNED', 'DISPUTED', 'RETURNED'],
  REFUNDED: ['RETURNED'],
  CLOSED: ['VOID', 'RETURNED', 'LAPSED'],
};

/** The provider statuses that each state allows at the end. */
const finalStatuses: typeof statuses = { ...statuses, UNPAID: [], FROZEN: ['HELD'] };

/** Further statuses of an order that an operator closed without asking the provider: during a run, and at the end. */
const closedStatuses: readonly PaymentStatus[] = ['ABSENT', 'AWAITING_BUYER', 'HELD'];
const closedFinally: readonly PaymentStatus[] = ['ABSENT'];

/** The review reason of an order that an operator stopped. */
const stopped = 'An operator stopped it.';

/** Returns whether an order may need review: its amount differs, it was stopped, or its money moved after the pay-out. */
function mayNeedPerson({ buyerId, review, hold }: Pick<BookedOrder, 'buyerId' | 'review' | 'hold'>): boolean {
  return isDiffering(buyerId) || review === stopped || (hold?.afterPayout.length ?? 0) > 0;
}

const isOpen = ({ status }: { readonly status: string }) => ['PREPARED', 'SENT', 'UNKNOWN'].includes(status);

/** Throws a Violation unless all invariants hold. They must hold at any time, also right after a crash. */
export function checkAlways(books: Books, witness: Witness): void {
  for (const order of books.orders) {
    checkHistory(order);
    checkLedger(order);
    checkParties(order, witness);
    checkMoney(order, statuses, witness.mayBeClosed(order.escrowId) ? closedStatuses : []);
    checkAfterPayout(order, witness);
    if (order.review !== null) {
      must(mayNeedPerson(order), order.escrowId, `it needs review: ${order.review}`);
    }
  }
  checkGiven(books);
  checkProvenance(books);
  checkNumbers(books);
  checkUniqueness(books);
  checkLog(books.log, witness.trees());
  witness.check(books);
}

/** Throws a Violation unless the service and the provider agree and nothing is open. */
export function checkFinally(books: Books, witness: Witness): void {
  for (const order of books.orders) {
    const { escrowId, review, operations } = order;
    must(review === null, escrowId, `it still needs review: ${review}`);
    const open = operations.filter(isOpen).map(({ kind, status }) => `${kind} ${status}`);
    must(open.length === 0, escrowId, `instructions are left open: ${open}`);
    checkMoney(order, finalStatuses, witness.mayBeClosed(escrowId) ? closedFinally : []);
    checkLastEntry(order);
  }
  const sum = (amounts: readonly number[]) => amounts.reduce((total, amount) => total + amount, 0);
  const frozen = sum(books.orders.filter(({ state }) => state === 'FROZEN').map(({ amount }) => amount));
  const held = books.holds.filter(({ status }) => status === 'HELD');
  const heldSum = sum(held.map(({ amount }) => amount ?? 0));
  must(frozen === heldSum, 'world', `${frozen} is frozen, and the provider holds ${heldSum}`);
}

function checkHistory({ escrowId, state, history }: BookedOrder): void {
  must(history[0] === 'UNPAID', escrowId, `its history begins with ${history[0]}`);
  must(history.at(-1) === state, escrowId, `it is ${state}; its history is ${history}`);
  for (const [index, next] of history.entries()) {
    const previous = history[index - 1];
    const isLegal = previous === undefined || nextStates[previous].includes(next);
    must(isLegal, escrowId, `its history is ${history}`);
  }
}

function checkLedger(order: BookedOrder): void {
  const { escrowId, state, history, operations, hold } = order;
  const statusesOf = (...kinds: InstructionKind[]) =>
    operations.filter(({ kind }) => kinds.includes(kind)).map(({ status }) => status);
  const confirmed = (...kinds: InstructionKind[]) =>
    statusesOf(...kinds).filter((status) => status === 'CONFIRMED').length;
  const freezes = statusesOf('FREEZE');
  must(freezes.length === 1, escrowId, `it has ${freezes.length} freezes`);
  const wasFrozen = history.includes('FROZEN');
  must(!wasFrozen || freezes[0] === 'CONFIRMED', escrowId, `it was FROZEN, but its FREEZE is ${freezes[0]}`);
  must(confirmed('RELEASE', 'REFUND') <= 1, escrowId, 'it was resolved twice');
  must(
    confirmed('RELEASE') === Number(state === 'RELEASED'),
    escrowId,
    `it is ${state}, and its confirmed RELEASEs do not match`,
  );
  // The money was paid out and returned before the service knew of either.
  const wentBack = hold?.afterPayout.at(-1)?.payment === 'RETURNED';
  const isReturned = wentBack || confirmed('REFUND', 'CANCEL') === 1;
  must(state !== 'REFUNDED' || isReturned, escrowId, 'REFUNDED without a REFUND');
}

/** Checks that the history has each change of the money after the release once and in order, each with an alert. */
function checkAfterPayout(order: BookedOrder, witness: Witness): void {
  const { escrowId, state, buyerId, hold, afterPayout, review, accepted, lookUpAtMs } = order;
  const happened = (hold?.afterPayout ?? []).map(({ payment }) => payment);
  const recorded = isDiffering(buyerId)
    ? afterPayout.filter((payment, index) => payment !== afterPayout[index - 1])
    : afterPayout;
  const inHistory = `its history has ${recorded} after the release`;
  let matched = 0;
  for (const payment of happened) if (payment === recorded[matched]) matched += 1;
  must(matched === recorded.length, escrowId, `${inHistory}; the provider had ${happened}`);
  must(recorded.length === 0 || state === 'RELEASED', escrowId, `it is ${state}, and ${inHistory}`);
  // A kill between the commit and the log line loses the line, but the order stays in review until an operator reads it.
  const alerts = witness.alertsOf(escrowId) + Number(review !== null || witness.wasReviewed(escrowId));
  must(recorded.length <= alerts, escrowId, `${inHistory}, and there were ${alerts} alerts`);
  const isHandled = review !== null || accepted === 1 || lookUpAtMs !== null;
  const last = recorded.at(-1) ?? 'PAID_OUT';
  const unhandled = `its money is ${last}, and it is neither in review nor due for a look-up`;
  must(isHandled || last === 'PAID_OUT', escrowId, unhandled);
}

/** Checks that the last status in the history is that of the provider. */
function checkLastEntry({ escrowId, state, hold, afterPayout }: BookedOrder): void {
  if (state !== 'RELEASED') return;
  const last = afterPayout.at(-1) ?? 'PAID_OUT';
  const message = `the last status in its history is ${last}; the provider says ${hold?.status}`;
  must(last === hold?.status, escrowId, message);
}

/** Checks that the buyer and the seller are parties of the platform that filed the artwork. */
function checkParties({ escrowId, buyerId, filedBy, operations }: BookedOrder, witness: Witness): void {
  const holdId = operations.find(({ kind }) => kind === 'FREEZE')?.instructionId ?? '';
  const own = {
    buyer: { customer: nameOf(filedBy, buyerId) },
    seller: { account: nameOf(filedBy, sellerId) },
  };
  for (const names of witness.namesOf(holdId)) {
    must(names === namesIn(own), escrowId, `${filedBy} filed its artwork, and ${names}`);
  }
}

/** Throws a Violation if an order waits for its buyer. Call this after the deadline of all buyers. */
export function checkNoneWaits({ orders }: Books): void {
  for (const { escrowId, nextActionUrl, hold, state } of orders) {
    const waits = nextActionUrl !== null || (state === 'UNPAID' && hold?.status === 'AWAITING_BUYER');
    must(!waits, escrowId, `it is ${state} and still waits for its buyer after the deadline`);
  }
}

function checkMoney(
  { escrowId, state, hold, amount }: BookedOrder,
  allowed: typeof statuses,
  ofClosed: readonly PaymentStatus[],
): void {
  const status = hold?.status ?? 'ABSENT';
  const isAllowed = allowed[state].includes(status) || (state === 'CLOSED' && ofClosed.includes(status));
  must(isAllowed, escrowId, `it is ${state}; the provider says ${status}`);
  const held = hold?.amount ?? amount;
  must(held === amount, escrowId, `its amount is ${amount}; the provider holds ${held}`);
  must(hold === undefined || hold.escrowId === escrowId, escrowId, `its hold is for ${hold?.escrowId}`);
}

/** Checks that each instruction was stored before the provider got it, and that the provider paid nothing twice. */
function checkGiven({ orders, given }: Books): void {
  const stored = new Map(orders.flatMap((order) => order.operations.map((one) => [one.instructionId, one])));
  for (const { instructionId, holdId, kind } of given) {
    const own = stored.get(instructionId);
    const what = `${instructionId}, a ${kind} of ${holdId}`;
    must(own !== undefined, holdId, `the provider got ${what}, which is not in the database`);
    must(own.kind === kind, holdId, `the provider got ${what}; it is stored as a ${own.kind}`);
    must(own.status !== 'PREPARED', holdId, `the provider got ${what}, which is not recorded as sent`);
  }
  for (const order of orders) checkPaidOnce(order);
}

function checkPaidOnce({ escrowId, given, operations }: BookedOrder): void {
  const own = new Set(operations.map(({ instructionId }) => instructionId));
  const foreign = given.filter(({ instructionId }) => !own.has(instructionId));
  const foreignIds = foreign.map(({ instructionId }) => instructionId);
  must(foreign.length === 0, escrowId, `the provider got instructions of other orders for it: ${foreignIds}`);
  const endedIn = (status: PaymentStatus) => (one: GivenOperation) => one.outcome === status;
  // An instruction may have been sent under several keys.
  const count = (kind: InstructionKind, status: PaymentStatus) =>
    new Set(given.filter((one) => one.kind === kind && endedIn(status)(one)).map((one) => one.instructionId))
      .size;
  const [paid, returned] = [count('RELEASE', 'PAID_OUT'), count('REFUND', 'RETURNED')];
  must(paid <= 1, escrowId, `it was paid out ${paid} times`);
  must(returned <= 1, escrowId, `it was refunded ${returned} times`);
}

/** Checks that each RELEASED order has one TRANSFER record. */
function checkProvenance({ orders, filings }: Books): void {
  const byFiling = Map.groupBy(orders, ({ filingNo }) => filingNo);
  for (const { filingNo, events } of filings) {
    const ofFiling = byFiling.get(filingNo) ?? [];
    const released = ofFiling.filter(({ state }) => state === 'RELEASED').length;
    const expected = Array.from({ length: released }, () => 'TRANSFER');
    const subject = ofFiling.at(-1)?.escrowId ?? filingNo;
    const message = `${filingNo} was sold ${released} times; its records are ${events}`;
    must(events.join() === expected.join(), subject, message);
  }
}

/** Checks that the numbers of filings have no gaps. */
function checkNumbers({ filings }: Books): void {
  for (const [index, { filingNo }] of filings.entries()) {
    const isNext = Number(/\d+$/.exec(filingNo)?.[0]) === index + 1;
    must(isNext, filingNo, `it is filing ${index + 1}; the previous one is ${filings[index - 1]?.filingNo}`);
  }
}

/** Checks that each CreateEscrow request opened at most one order, and that a filing has at most one active order. */
function checkUniqueness({ orders }: Books): void {
  for (const [buyerId, ofBuyer] of Map.groupBy(orders, (order) => order.buyerId)) {
    const ids = ofBuyer.map(({ escrowId }) => escrowId);
    must(ids.length === 1, ids[1] ?? '', `one request of ${buyerId} opened ${ids}`);
  }
  const active = orders.filter(({ state }) => state === 'UNPAID' || state === 'FROZEN');
  for (const [filingNo, ofFiling] of Map.groupBy(active, (order) => order.filingNo)) {
    const ids = ofFiling.map(({ escrowId }) => escrowId);
    must(ids.length === 1, ids[1] ?? '', `${filingNo} has several active orders: ${ids}`);
  }
}
