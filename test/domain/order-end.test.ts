import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Escrow, escrowStates, type InstructionKind, isByOperator } from '../../src/domain/escrow.ts';
import { type OrderEnd, orderEnds, planEnd } from '../../src/domain/resolution.ts';

const escrowId = 'ES-2026-0000';
const openOf = (...kinds: InstructionKind[]) =>
  kinds.map((kind) => ({ instructionId: `of ${kind}`, kind, status: 'UNKNOWN' }) as const);

/** Whether an operator can end an order as RELEASED, REFUNDED, CLOSED: if it is idle, in review, or has an open instruction. */
const documentedEnds = {
  UNPAID: ['END END END', 'END END END', 'END END END'],
  FROZEN: ['END END END', 'END END END', 'END END END'],
  RELEASED: ['x x x', 'END x x', 'END x x'],
  REFUNDED: ['x x x', 'x END x', 'x END x'],
  CLOSED: ['x x x', 'x x END', 'x x END'],
} as const;

for (const state of escrowStates) {
  const [idle, stopped, underWay] = documentedEnds[state];
  test(`an operator ends a ${state} order: ${idle}; in review ${stopped}; with an open instruction ${underWay}`, () => {
    assert.deepEqual(orderEnds, ['RELEASED', 'REFUNDED', 'CLOSED']);
    const outcomes = (isStopped: boolean, kinds: readonly InstructionKind[]) =>
      orderEnds
        .map((end) => planEnd(end, { escrowId, state, isStopped, open: openOf(...kinds) }))
        .map(({ kind }) => (kind === 'END' ? kind : 'x'))
        .join(' ');
    assert.equal(outcomes(false, []), idle);
    assert.equal(outcomes(true, []), stopped);
    for (const kind of ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL'] as const) {
      assert.equal(outcomes(false, [kind]), underWay);
      assert.equal(outcomes(true, [kind]), underWay);
    }
  });
}

/** How each open instruction ends: + is CONFIRMED, - is DECLINED. */
const documentedInstructions: Readonly<Record<OrderEnd, Readonly<Record<InstructionKind, '+' | '-'>>>> = {
  RELEASED: { FREEZE: '+', RELEASE: '+', REFUND: '-', CANCEL: '-' },
  REFUNDED: { FREEZE: '+', RELEASE: '-', REFUND: '+', CANCEL: '+' },
  CLOSED: { FREEZE: '-', RELEASE: '-', REFUND: '-', CANCEL: '+' },
};

for (const end of orderEnds) {
  test(`ending an order as ${end} ends all open instructions`, () => {
    const kinds = Object.keys(documentedInstructions[end]) as InstructionKind[];
    const plan = planEnd(end, { escrowId, state: 'FROZEN', isStopped: true, open: openOf(...kinds) });
    assert.ok(plan.kind === 'END');
    const reason = `An operator of the registry ended the order as ${end}.`;
    assert.deepEqual(
      plan.ended,
      kinds.map((kind) =>
        documentedInstructions[end][kind] === '+'
          ? { instructionId: `of ${kind}`, status: 'CONFIRMED', reason: undefined }
          : { instructionId: `of ${kind}`, status: 'DECLINED', reason },
      ),
    );
  });
}

test('a state by an operator stays so until the provider reports another state', () => {
  const at = '2026-11-21T12:00:00+00:00';
  const isMarked = (...history: Escrow['history']) => isByOperator(history);
  const released = { state: 'RELEASED', at, byOperator: true } as const;
  assert.equal(isMarked({ state: 'FROZEN', at }), false);
  assert.equal(isMarked({ state: 'FROZEN', at }, released), true);
  assert.equal(isMarked(released, { state: 'RELEASED', at, payment: 'DISPUTED' }), true);
});
