import { filingNumber } from '../domain/filing.ts';
import type { NumberGap } from '../store/sqlite/restorations.ts';

/** Numbers that are left out, for a person. */
export function gapLine({ kind, year, after, through }: NumberGap): string {
  return kind === 'FILING'
    ? `left out: ${filingNumber(year, after + 1)} to ${filingNumber(year, through)}`
    : `left out: ${through - after} escrow ids of ${year}`;
}
