import type { EscrowState, InstructionKind } from '../src/domain/escrow.ts';
import type { PaymentStatus } from '../src/domain/payment.ts';
import type { BookedOrder, Books, GivenOperation } from './books.ts';
import { checkLog } from './evidence.ts';
import { isDiffering, nameOf, namesIn, sellerId } from './parties.ts';
import { must } from './violation.ts';
import type { Witness } from './witness.ts';

/** The states that may follow each. */
const steps: Readonly<Record<EscrowState, readonly EscrowState[]>> = {
  UNPAID: ['FROZEN', 'CLOSED'],
  FROZEN: ['RELEASED', 'REFUNDED', 'CLOSED'],
  RELEASED: [],
  REFUNDED: [],
  CLOSED: [],
};

/** Where the money of an order may be meanwhile: the provider may know more than the order. */
const statuses: Readonly<Record<EscrowState, readonly PaymentStatus[]>> = {
  UNPAID: ['ABSENT', 'AWAITING_BUYER', 'VOID', 'HELD', 'RETURNED', 'LAPSED'],
  FROZEN: ['HELD', 'PAID_OUT', 'PARTLY_RETURNED', 'DISPUTED', 'RETURNED', 'LAPSED'],
  RELEASED: ['PAID_OUT', 'PARTLY_RETURNED', 'DISPUTED', 'RETURNED'],
  REFUNDED: ['RETURNED'],
  CLOSED: ['VOID', 'RETURNED', 'LAPSED'],
};

/** Where it is in the end. */
const finalStatuses: typeof statuses = { ...statuses, UNPAID: [], FROZEN: ['HELD'] };

/** Where else it may be if a person closed the order without knowing, and in the end. */
const closedStatuses: readonly PaymentStatus[] = ['ABSENT', 'AWAITING_BUYER', 'HELD'];
const closedFinally: readonly PaymentStatus[] = ['ABSENT'];

/** The review of an order that an operator stopped. */
const stopped = 'An operator stopped it.';

/** Whether an order may need review: it differs, was stopped, or its money moved after the pay-out. */
export function mayNeedPerson({
  buyerId,
  review,
  hold,
}: Pick<BookedOrder, 'buyerId' | 'review' | 'hold'>): boolean {
  return isDiffering(buyerId) || review === stopped || (hold?.afterPayout.length ?? 0) > 0;
}

const isOpen = ({ status }: { readonly status: string }) => ['PREPARED', 'SENT', 'UNKNOWN'].includes(status);

/** Throws a Violation unless all invariants hold, also right after a crash. */
export function checkAlways(books: Books, witness: Witness): void {
  for (const order of books.orders) {
    checkHistory(order);
    checkLedger(order);
    checkParties(order, witness);
    checkMoney(order, statuses, witness.mayBeClosed(order.escrowId) ? closedStatuses : []);
    checkAfterPayout(order, witness);
    if (order.review !== null) {
      must(mayNeedPerson(order), order.escrowId, `it needs a person: ${order.review}`);
    }
  }
  checkGiven(books);
  checkProvenance(books);
  checkNumbers(books);
  checkUniqueness(books);
  checkLog(books.log, witness.trees());
  witness.check(books);
}

/** Throws a Violation unless both sides agree, and nothing is left to do. */
export function checkFinally(books: Books, witness: Witness): void {
  for (const order of books.orders) {
    const { escrowId, review, operations } = order;
    must(review === null, escrowId, `it still needs a person: ${review}`);
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
  for (const [place, next] of history.entries()) {
    const before = history[place - 1];
    must(before === undefined || steps[before].includes(next), escrowId, `its history is ${history}`);
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
  must(!wasFrozen || freezes[0] === 'CONFIRMED', escrowId, `it was FROZEN, its FREEZE is ${freezes[0]}`);
  must(confirmed('RELEASE', 'REFUND') <= 1, escrowId, 'it was resolved twice');
  must(
    confirmed('RELEASE') === Number(state === 'RELEASED'),
    escrowId,
    `${state}, and its RELEASE is not so`,
  );
  // It was paid out, and returned before the service knew of either.
  const wentBack = hold?.afterPayout.at(-1)?.payment === 'RETURNED';
  const isReturned = wentBack || confirmed('REFUND', 'CANCEL') === 1;
  must(state !== 'REFUNDED' || isReturned, escrowId, 'REFUNDED without a REFUND');
}

/** The history has what happened to the money after the release, each once and in order, and a person was called. */
function checkAfterPayout(order: BookedOrder, witness: Witness): void {
  const { escrowId, state, buyerId, hold, afterPayout, review, accepted, lookUpAtMs } = order;
  const happened = (hold?.afterPayout ?? []).map(({ payment }) => payment);
  const said = isDiffering(buyerId)
    ? afterPayout.filter((one, place) => one !== afterPayout[place - 1])
    : afterPayout;
  let place = 0;
  for (const payment of happened) if (payment === said[place]) place += 1;
  must(place === said.length, escrowId, `its history has ${said} after the release; there was ${happened}`);
  must(said.length === 0 || state === 'RELEASED', escrowId, `it is ${state}, and its history has ${said}`);
  // A kill between the commit and the log line loses the line, but the order stays in review until a person finds it.
  const alarms = witness.alarmsOf(escrowId) + Number(review !== null || witness.wasFound(escrowId));
  must(said.length <= alarms, escrowId, `its history has ${said}, and a person was called ${alarms} times`);
  const isSettled = review !== null || accepted === 1 || lookUpAtMs !== null;
  const last = said.at(-1) ?? 'PAID_OUT';
  must(isSettled || last === 'PAID_OUT', escrowId, `its money is ${last}, and nobody looks at it`);
}

/** The last entry of the history says where the money is. */
function checkLastEntry({ escrowId, state, hold, afterPayout }: BookedOrder): void {
  if (state !== 'RELEASED') return;
  const last = afterPayout.at(-1) ?? 'PAID_OUT';
  must(last === hold?.status, escrowId, `its history has ${last} last; the provider says ${hold?.status}`);
}

/** Only parties of the platform that filed a work pay for it and are paid. */
function checkParties({ escrowId, buyerId, filedBy, operations }: BookedOrder, witness: Witness): void {
  const holdId = operations.find(({ kind }) => kind === 'FREEZE')?.instructionId ?? '';
  const own = {
    buyer: { customer: nameOf(filedBy, buyerId) },
    seller: { account: nameOf(filedBy, sellerId) },
  };
  for (const names of witness.namesOf(holdId)) {
    must(names === namesIn(own), escrowId, `it is for a work of ${filedBy}, and ${names}`);
  }
}

/** Throws a Violation if an order still waits for its buyer although the time of all buyers is over. */
export function checkNoneWaits({ orders }: Books): void {
  for (const { escrowId, nextActionUrl, hold, state } of orders) {
    const waits = nextActionUrl !== null || (state === 'UNPAID' && hold?.status === 'AWAITING_BUYER');
    must(!waits, escrowId, `it is ${state} and still awaits its buyer, whose time is over`);
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
  must(held === amount, escrowId, `it is over ${amount}; the provider holds ${held}`);
  must(hold === undefined || hold.escrowId === escrowId, escrowId, `its hold is for ${hold?.escrowId}`);
}

/** Each instruction was stored before the provider got it, and the provider paid nothing twice. */
function checkGiven({ orders, given }: Books): void {
  const written = new Map(orders.flatMap((order) => order.operations.map((one) => [one.instructionId, one])));
  for (const { instructionId, holdId, kind } of given) {
    const own = written.get(instructionId);
    const what = `${instructionId}, a ${kind} of ${holdId}`;
    must(own !== undefined, holdId, `the provider got ${what}, which is stored nowhere`);
    must(own.kind === kind, holdId, `the provider got ${what}; it is a ${own.kind}`);
    must(own.status !== 'PREPARED', holdId, `the provider got ${what}, which was never sent`);
  }
  for (const order of orders) checkPaidOnce(order);
}

function checkPaidOnce({ escrowId, given, operations }: BookedOrder): void {
  const own = new Set(operations.map(({ instructionId }) => instructionId));
  const foreign = given.filter(({ instructionId }) => !own.has(instructionId));
  must(foreign.length === 0, escrowId, `it was sent ${foreign.map(({ instructionId }) => instructionId)}`);
  const endedIn = (status: PaymentStatus) => (one: GivenOperation) => one.outcome === status;
  // An instruction may have been given under several keys.
  const count = (kind: InstructionKind, status: PaymentStatus) =>
    new Set(given.filter((one) => one.kind === kind && endedIn(status)(one)).map((one) => one.instructionId))
      .size;
  const [paid, returned] = [count('RELEASE', 'PAID_OUT'), count('REFUND', 'RETURNED')];
  must(paid <= 1, escrowId, `it was paid out ${paid} times`);
  must(returned <= 1, escrowId, `it was paid back ${returned} times`);
}

/** Each RELEASED order has its one TRANSFER record. */
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

/** Filings are numbered without gaps. */
function checkNumbers({ filings }: Books): void {
  for (const [place, { filingNo }] of filings.entries()) {
    const isNext = Number(/\d+$/.exec(filingNo)?.[0]) === place + 1;
    must(isNext, filingNo, `it is filing ${place + 1}, as ${filings[place - 1]?.filingNo} is the one before`);
  }
}

/** Each opening made one order at most, and a filing has one at a time that is under way. */
function checkUniqueness({ orders }: Books): void {
  for (const [buyerId, ofBuyer] of Map.groupBy(orders, (order) => order.buyerId)) {
    const ids = ofBuyer.map(({ escrowId }) => escrowId);
    must(ids.length === 1, ids[1] ?? '', `one request of ${buyerId} opened ${ids}`);
  }
  const active = orders.filter(({ state }) => state === 'UNPAID' || state === 'FROZEN');
  for (const [filingNo, ofFiling] of Map.groupBy(active, (order) => order.filingNo)) {
    const ids = ofFiling.map(({ escrowId }) => escrowId);
    must(ids.length === 1, ids[1] ?? '', `${filingNo} has several orders under way: ${ids}`);
  }
}
