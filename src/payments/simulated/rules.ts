import type { InstructionKind } from '../../domain/escrow.ts';
import type { Declined, PaymentStatus } from '../../domain/payment.ts';

type Moves = Readonly<Record<InstructionKind, Readonly<Partial<Record<PaymentStatus, PaymentStatus>>>>>;

const moves: Moves = {
  FREEZE: { ABSENT: 'HELD' },
  RELEASE: { HELD: 'PAID_OUT' },
  REFUND: { AWAITING_BUYER: 'VOID', HELD: 'RETURNED' },
  CANCEL: { ABSENT: 'VOID', AWAITING_BUYER: 'VOID', HELD: 'RETURNED' },
};

// Money on its way back to the buyer needs nobody's consent.
const movesDeclined: Moves = { ...moves, FREEZE: { ABSENT: 'VOID' }, RELEASE: {} };
// Where no money was held, there is nothing to refuse.
const movesRejected: Moves = { ...movesDeclined, REFUND: {}, CANCEL: { ABSENT: 'VOID' } };
const movesUnder = { CONSENTED: moves, DECLINED: movesDeclined, REFUSED: movesRejected } as const;

/**
 * Who says no to an instruction: nobody; its party, who gets no hold as a buyer and is not paid as a seller; or the
 * provider itself, which does not give money back either.
 */
export type Verdict = keyof typeof movesUnder;

/** Where an instruction takes the money from `status`; what does not apply leaves it there. */
export function statusAfter(kind: InstructionKind, status: PaymentStatus, verdict: Verdict): PaymentStatus {
  return movesUnder[verdict][kind][status] ?? status;
}

/** Why there is no hold, or an instruction was not carried out: who said no to it, or a buyer who could not act. */
export type RefusalReason = Exclude<Verdict, 'CONSENTED'> | 'BUYER_FAILS';

/** What is said of each. */
export const refusals: Readonly<Record<RefusalReason, Declined>> = {
  DECLINED: {
    code: 'party_declined',
    words: 'The payment was declined.',
    detail: 'party_declined: the simulated provider was told that the party says no.',
  },
  REFUSED: {
    code: 'provider_refused',
    words: 'The payment provider refused it.',
    detail: 'provider_refused: the simulated provider was told to refuse it.',
  },
  BUYER_FAILS: {
    code: 'authentication_failed',
    words: 'The buyer could not confirm the payment.',
    detail: 'authentication_failed: the simulated buyer acted, and failed.',
  },
};

/** Where money is that was paid out, by what the seller has left of it. */
export function payoutStatus(paid: bigint, left: bigint): 'PAID_OUT' | 'PARTLY_RETURNED' | 'RETURNED' {
  if (left === 0n) return 'RETURNED';
  return left === paid ? 'PAID_OUT' : 'PARTLY_RETURNED';
}
