import type { InstructionKind } from '../../domain/escrow.ts';
import type { PaymentStatus } from '../../domain/payment.ts';

type Moves = Readonly<Record<InstructionKind, Readonly<Partial<Record<PaymentStatus, PaymentStatus>>>>>;

const moves: Moves = {
  FREEZE: { ABSENT: 'HELD' },
  RELEASE: { HELD: 'PAID_OUT' },
  REFUND: { HELD: 'RETURNED' },
  CANCEL: { ABSENT: 'VOID', HELD: 'RETURNED' },
};

// Money on its way back to the buyer needs nobody's consent.
const movesDeclined: Moves = { ...moves, FREEZE: { ABSENT: 'VOID' }, RELEASE: {} };
// Where no money was held, there is nothing to refuse.
const movesRefused: Moves = { ...movesDeclined, REFUND: {}, CANCEL: { ABSENT: 'VOID' } };
const movesUnder = { CONSENTED: moves, DECLINED: movesDeclined, REFUSED: movesRefused } as const;

/**
 * Who says no to an instruction: nobody; its party, who gets no hold as a buyer and is not paid as a seller; or the
 * institution itself, which does not give money back either.
 */
export type Verdict = keyof typeof movesUnder;

/** Where an instruction takes the money from `status`; what does not apply leaves it there. */
export function statusAfter(kind: InstructionKind, status: PaymentStatus, verdict: Verdict): PaymentStatus {
  return movesUnder[verdict][kind][status] ?? status;
}
