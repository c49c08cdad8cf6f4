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

/**
 * Where an instruction takes the money from `standing`; what does not apply leaves it there. `declined` means
 * that the party does not get what is asked for: no hold for the buyer, nothing paid out to the seller.
 */
export function standingAfter(
  kind: InstructionKind,
  standing: PaymentStatus,
  declined: boolean,
): PaymentStatus {
  return (declined ? movesDeclined : moves)[kind][standing] ?? standing;
}
