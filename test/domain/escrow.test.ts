import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EscrowState, escrowStates, type InstructionKind, pendingOf } from '../../src/domain/escrow.ts';
import { checkTerms } from '../../src/domain/escrow-terms.ts';
import {
  instructionOutcomes,
  nextTransition,
  type PaymentSnapshot,
  type PaymentStatus,
  type Transition,
} from '../../src/domain/payment.ts';
import {
  type Decision,
  type DecisionPlan,
  errorToClose,
  planDecision,
  planResolution,
} from '../../src/domain/resolution.ts';

const terms = {
  filingNo: 'AS-2026-000001',
  type: 'GUARANTEE',
  amount: 1n,
  buyerId: 'buyer',
  sellerId: 'seller',
} as const;

/** Parses a table with a column for each status. */
function readTable(text: string): readonly (readonly [row: string, column: string, cell: string])[] {
  const [heads = [], ...rows] = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));
  return rows.flatMap(([row = '', ...cells]) => {
    assert.equal(cells.length, heads.length, row);
    return cells.map((cell, place) => [row, heads[place] ?? '', cell] as const);
  });
}

const documentedOutcomes = readTable(`
           ABSENT           AWAITING_BUYER   VOID             HELD             PAID_OUT         PARTLY_RETURNED  DISPUTED         RETURNED         LAPSED
  FREEZE   OPEN             OPEN             DECLINED         CONFIRMED        CONFIRMED        CONFIRMED        CONFIRMED        CONFIRMED        CONFIRMED
  RELEASE  OPEN             OPEN             DECLINED         OPEN             CONFIRMED        CONFIRMED        CONFIRMED        DECLINED         DECLINED
  REFUND   OPEN             OPEN             DECLINED         OPEN             DECLINED         DECLINED         DECLINED         CONFIRMED        DECLINED
  CANCEL   OPEN             OPEN             CONFIRMED        OPEN             DECLINED         DECLINED         DECLINED         CONFIRMED        CONFIRMED
`);

/** A table of the code, as the rows of `readTable`. */
const cellsOf = (table: Readonly<Record<string, Readonly<Record<string, string>>>>) =>
  Object.entries(table).flatMap(([row, cells]) =>
    Object.entries(cells).map(([column, cell]) => [row, column, cell] as const),
  );

test('the table of outcomes is the documented one', () => {
  assert.deepEqual(cellsOf(instructionOutcomes), documentedOutcomes);
});

/**
 * The transition of an order, by its state and the provider status. Of three words the first counts if no return is open, the
 * second if a CANCEL or REFUND is open, the third if it was declined (after |: if a RELEASE is open, too).
 *
 * A state is the next one; + gives back what is held. The other words are reviews: of a contradiction (!), of money that does not go
 * back (x), of another amount or currency (#).
 */
const documentedTransitions = readTable(`
                            as agreed                     another amount or currency
  UNPAID ABSENT             UNPAID UNPAID UNPAID          UNPAID UNPAID UNPAID
  UNPAID AWAITING_BUYER     UNPAID UNPAID x               UNPAID UNPAID x
  UNPAID VOID               CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  UNPAID HELD               FROZEN UNPAID x               # UNPAID #
  UNPAID PAID_OUT           ! ! !                         # # #
  UNPAID PARTLY_RETURNED    ! ! !                         # # #
  UNPAID DISPUTED           ! ! !                         ! ! !
  UNPAID RETURNED           CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  UNPAID LAPSED             CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  FROZEN ABSENT             ! ! !                         ! ! !
  FROZEN AWAITING_BUYER     ! FROZEN !                    ! FROZEN !
  FROZEN VOID               ! ! !                         ! ! !
  FROZEN HELD               FROZEN FROZEN FROZEN|x        # FROZEN #
  FROZEN PAID_OUT           !|RELEASED !|RELEASED !|RELEASED  # # #
  FROZEN PARTLY_RETURNED    ! ! !                         # # #
  FROZEN DISPUTED           ! ! !                         ! ! !
  FROZEN RETURNED           REFUNDED REFUNDED REFUNDED    REFUNDED REFUNDED REFUNDED
  FROZEN LAPSED             CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  RELEASED ABSENT           ! ! !                         ! ! !
  RELEASED AWAITING_BUYER   ! RELEASED !                  ! RELEASED !
  RELEASED VOID             ! ! !                         ! ! !
  RELEASED HELD             ! RELEASED !                  # RELEASED #
  RELEASED PAID_OUT         RELEASED RELEASED RELEASED    # # #
  RELEASED PARTLY_RETURNED  ! ! !                         # # #
  RELEASED DISPUTED         ! ! !                         ! ! !
  RELEASED RETURNED         ! ! !                         ! ! !
  RELEASED LAPSED           ! ! !                         ! ! !
  REFUNDED ABSENT           ! ! !                         ! ! !
  REFUNDED AWAITING_BUYER   ! REFUNDED !                  ! REFUNDED !
  REFUNDED VOID             ! ! !                         ! ! !
  REFUNDED HELD             ! REFUNDED !                  # REFUNDED #
  REFUNDED PAID_OUT         ! ! !                         # # #
  REFUNDED PARTLY_RETURNED  ! ! !                         # # #
  REFUNDED DISPUTED         ! ! !                         ! ! !
  REFUNDED RETURNED         REFUNDED REFUNDED REFUNDED    REFUNDED REFUNDED REFUNDED
  REFUNDED LAPSED           REFUNDED REFUNDED REFUNDED    REFUNDED REFUNDED REFUNDED
  CLOSED ABSENT             CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  CLOSED AWAITING_BUYER     CLOSED+ CLOSED x              CLOSED+ CLOSED x
  CLOSED VOID               CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  CLOSED HELD               CLOSED+ CLOSED x              # CLOSED #
  CLOSED PAID_OUT           ! ! !                         # # #
  CLOSED PARTLY_RETURNED    ! ! !                         # # #
  CLOSED DISPUTED           ! ! !                         ! ! !
  CLOSED RETURNED           CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
  CLOSED LAPSED             CLOSED CLOSED CLOSED          CLOSED CLOSED CLOSED
`);

/** The next state if an operator accepts a contradiction; without an entry the order keeps its state. */
const documentedAcceptances = new Map([
  ['UNPAID PAID_OUT', 'FROZEN'],
  ['UNPAID PARTLY_RETURNED', 'FROZEN'],
  ['UNPAID DISPUTED', 'FROZEN'],
  ['FROZEN PAID_OUT', 'RELEASED'],
  ['FROZEN PARTLY_RETURNED', 'RELEASED'],
  ['FROZEN DISPUTED', 'RELEASED'],
  ['FROZEN ABSENT', 'CLOSED'],
  ['FROZEN VOID', 'CLOSED'],
]);

const statuses = Object.keys(instructionOutcomes.FREEZE) as PaymentStatus[];
const kinds: readonly InstructionKind[] = ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL'];
const returns: readonly (InstructionKind | undefined)[] = ['REFUND', 'CANCEL'];
/** Every set of kinds. */
const kindSets = Array.from({ length: 2 ** kinds.length }, (_, bits) =>
  kinds.filter((_kind, place) => (bits >> place) % 2 === 1),
);
const agreed = [{ amount: 500n, currency: 'CNY' }];
const other = { amount: 7n, currency: 'EUR' };
const different = [
  { amount: 499n, currency: 'CNY' },
  { amount: 501n, currency: 'CNY' },
  { amount: 500n, currency: 'USD' },
  { amount: 500n, currency: 'cny' },
  { amount: 5n, currency: 'USD' },
  { amount: undefined, currency: 'CNY' },
  { amount: 500n, currency: undefined },
  {},
];

/** A transition in the words of the table. */
function wordOf(transition: Transition): string {
  if (transition.kind === 'SETTLED') return `${transition.to}${transition.givesBack ? '+' : ''}`;
  if (/declines to give back/.test(transition.why)) return 'x';
  return /over 500 CNY/.test(transition.why) ? '#' : '!';
}

test('the table of transitions has every state and status once', () => {
  const rows = documentedTransitions.map(([row]) => row);
  const pairs = escrowStates.flatMap((state) => statuses.map((status) => `${state} ${status}`));
  assert.deepEqual(
    rows.filter((_, place) => place % 2 === 0),
    pairs,
  );
});

/** Asserts a cell for every set of open instructions and every declined instruction. */
function assertTransition(
  pair: string,
  cell: string,
  accepted: PaymentSnapshot | undefined,
  holds: readonly Omit<PaymentSnapshot, 'status'>[],
) {
  const [state, status] = pair.split(' ') as [EscrowState, PaymentStatus];
  const [plain, returning, declining] = cell.split(' ').map((word) => word.split('|'));
  for (const held of holds) {
    for (const openKinds of kindSets) {
      for (const declined of [undefined, ...kinds]) {
        const order = { state, amount: 500n, currency: 'CNY', accepted, openKinds };
        const isReturning = openKinds.some((kind) => returns.includes(kind) && kind !== declined);
        const isDeclined = returns.includes(declined);
        const [alone, beside = alone] = (isReturning ? returning : isDeclined ? declining : plain) ?? [];
        const expected = openKinds.includes('RELEASE') ? beside : alone;
        const word = wordOf(nextTransition(order, { status, ...held }, declined));
        assert.equal(word, expected, `${openKinds} ${declined} ${held.amount} ${held.currency}`);
      }
    }
  }
}

for (const [pair, money, cell] of documentedTransitions) {
  test(`an order and its money that are ${pair}, ${money}: ${cell}`, () => {
    assertTransition(pair, cell, undefined, money === 'as agreed' ? agreed : different);
  });
  if (money !== 'as agreed') continue;
  const [state = '', status = ''] = pair.split(' ');
  const goesTo = documentedAcceptances.get(pair) ?? state;
  const accepted = cell.replaceAll('!', goesTo).replace('+', '');
  test(`an order and its money that are ${pair}, which an operator accepted: ${accepted}`, () => {
    assertTransition(pair, accepted, { status: status as PaymentStatus, ...other }, [...agreed, other]);
  });
  test(`an order and its money that are ${pair}, if an operator accepted another status: ${cell}`, () => {
    for (const unlike of statuses.filter((candidate) => candidate !== status)) {
      assertTransition(pair, cell, { status: unlike, ...other }, [...agreed, other]);
    }
  });
}

test('a review shows the state of the order and the provider status', () => {
  const order = {
    state: 'FROZEN',
    amount: 500n,
    currency: 'CNY',
    accepted: undefined,
    openKinds: [],
  } as const;
  assert.deepEqual(nextTransition(order, { status: 'HELD', amount: 499n, currency: 'USD' }), {
    kind: 'REVIEW',
    why: 'The order is over 500 CNY; the provider says HELD 499 USD, in minor units.',
  });
  assert.deepEqual(nextTransition(order, { status: 'VOID' }), {
    kind: 'REVIEW',
    why: 'The order is FROZEN; the provider says VOID.',
  });
});

const escrowId = 'ES-2026-0000';
const underWays = [undefined, 'RELEASE', 'REFUND', 'CANCEL'] as const;

/** An outcome in a word: the prepared instruction, = for none, x for an error. */
function outcomeOf(outcome: DecisionPlan): string {
  if (outcome.kind === 'PREPARE') return outcome.instruction;
  if (outcome.kind === 'STOP') return 'STOP';
  return outcome.kind === 'RESUME' ? '=' : 'x';
}

/** The outcomes of requests and decisions, by state, while nothing, a RELEASE, a REFUND or a CANCEL is open. */
const documentedRequests = {
  RELEASE: {
    UNPAID: 'x x x x',
    FROZEN: 'RELEASE = x x',
    RELEASED: 'x x x x',
    REFUNDED: 'x x x x',
    CLOSED: 'x x x x',
  },
  REFUND: {
    UNPAID: 'CANCEL x x =',
    FROZEN: 'REFUND x = x',
    RELEASED: 'x x x x',
    REFUNDED: 'x x x x',
    CLOSED: 'x x x x',
  },
} as const;
const documentedReturns = {
  UNPAID: 'CANCEL CANCEL = =',
  FROZEN: 'REFUND REFUND = =',
  RELEASED: 'REFUND REFUND = =',
  REFUNDED: 'REFUND REFUND = =',
  CLOSED: 'REFUND REFUND = =',
} as const;

for (const kind of ['RELEASE', 'REFUND'] as const) {
  for (const state of escrowStates) {
    test(`a ${kind} of a ${state} order: ${documentedRequests[kind][state]}`, () => {
      const order = { escrowId, state, isStopped: false };
      const outcomes = underWays.map((underWay) => outcomeOf(planResolution(kind, { ...order, underWay })));
      assert.equal(outcomes.join(' '), documentedRequests[kind][state]);
      const stopped = { ...order, isStopped: true };
      const waiting = underWays.map((underWay) => outcomeOf(planResolution(kind, { ...stopped, underWay })));
      assert.equal(waiting.join(' '), documentedRequests[kind][state].replace(/^[A-Z]\w+/, 'x'));
    });
  }
}

for (const state of escrowStates) {
  test(`a RETURN of a ${state} order: ${documentedReturns[state]}`, () => {
    const order = {
      escrowId,
      state,
      isStopped: true,
      hasPaid: false,
      hasOpen: true,
      hasDeclinedReturn: false,
    };
    const outcomes = (decision: Decision, more: object = {}, status: PaymentStatus = 'HELD') =>
      underWays
        .map((underWay) => planDecision(decision, { ...order, underWay, found: { status }, ...more }))
        .map(outcomeOf)
        .join(' ');
    assert.equal(outcomes('RETURN'), documentedReturns[state]);
    assert.equal(outcomes('RETURN', { hasPaid: true }), 'x x x x');
    assert.equal(outcomes('LOOK_AGAIN', { found: undefined, hasPaid: true }), '= = = =');
    for (const status of statuses) {
      const isForgotten = state === 'CLOSED' && status === 'HELD';
      assert.equal(outcomes('ACCEPT', {}, status), isForgotten ? 'x x x x' : '= = = =');
      assert.equal(outcomes('ACCEPT', { hasDeclinedReturn: true }, status), '= = = =');
      if (status !== 'HELD') assert.equal(outcomes('RETURN', {}, status), 'x x x x');
    }
    assert.equal(outcomes('ACCEPT', { found: undefined }), 'x x x x');
    const withoutStatus = state === 'FROZEN' ? documentedReturns.FROZEN : 'x x x x';
    assert.equal(outcomes('RETURN', { found: undefined }), withoutStatus, 'a RELEASE without a response');
    assert.equal(outcomes('RETURN', { found: undefined, hasPaid: true }), 'x x x x');
    for (const decision of ['LOOK_AGAIN', 'ACCEPT', 'RETURN'] as const) {
      assert.equal(outcomes(decision, { isStopped: false }), 'x x x x');
    }
    assert.equal(outcomes('STOP'), 'x x x x');
    assert.equal(outcomes('STOP', { isStopped: false, hasOpen: false }), 'x x x x');
    assert.equal(outcomes('STOP', { isStopped: false }), 'STOP STOP STOP STOP');
  });

  test(`an operator can ${state === 'UNPAID' ? '' : 'not '}close a ${state} order`, () => {
    const isRejected = (found: PaymentSnapshot | undefined) =>
      errorToClose({ escrowId, state, found }) !== undefined;
    assert.equal(isRejected(undefined), state !== 'UNPAID');
    for (const status of statuses) {
      assert.equal(isRejected({ status }), state !== 'UNPAID' || status !== 'ABSENT');
    }
  });
}

test('callers see the open instruction, and a CANCEL as a REFUND', () => {
  for (const kind of ['FREEZE', 'RELEASE', 'REFUND', undefined] as const) assert.equal(pendingOf(kind), kind);
  assert.equal(pendingOf('CANCEL'), 'REFUND');
});

test('buyer and seller must differ by a code point', () => {
  const same = checkTerms({ ...terms, buyerId: 'x', sellerId: 'x' });
  assert.deepEqual(same, [{ field: 'sellerId', rule: 'must differ from buyerId' }]);
  for (const [buyerId, sellerId] of [
    ['x', 'X'],
    ['x', 'x '],
    ['é', 'e\u0301'],
  ] as const) {
    assert.deepEqual(checkTerms({ ...terms, buyerId, sellerId }), []);
  }
});

test('all invalid terms are reported', () => {
  const nothing = { filingNo: '', type: undefined, amount: 0n, buyerId: '', sellerId: '' };
  const fields = checkTerms(nothing).map(({ field }) => field);
  assert.deepEqual(fields, ['filingNo', 'type', 'amount', 'buyerId', 'sellerId']);
});
