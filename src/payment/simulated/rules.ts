import type { OperationKind, Standing } from '../../domain/escrow.ts';

type Moves = Readonly<Record<OperationKind, Readonly<Partial<Record<Standing, Standing>>>>>;

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
export function standingAfter(kind: OperationKind, standing: Standing, declined: boolean): Standing {
  return (declined ? movesDeclined : moves)[kind][standing] ?? standing;
}
