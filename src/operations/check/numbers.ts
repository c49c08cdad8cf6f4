import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingSequenceMax } from '../../domain/filing.ts';
import type { UsedNumbers } from '../../store/sqlite/inspection.ts';
import { type Finding, findingsOf } from './finding.ts';

/** The share of used numbers from which there is a warning. */
const warnedShare = 0.8;

/** Checks whether the numbers of the year run out, of the registry or of a platform with a cap on filings. */
export function checkNumbers({ filingNumbers, escrowNumbers, caps }: UsedNumbers): Finding[] {
  const { ok, warning } = findingsOf('numbers');
  const uses = [
    {
      used: filingNumbers,
      of: filingSequenceMax,
      text: usedOf(filingNumbers, filingSequenceMax, 'filing numbers'),
    },
    {
      used: escrowNumbers,
      of: escrowSequenceMax,
      text: usedOf(escrowNumbers, escrowSequenceMax, 'escrow ids'),
    },
    ...caps.map(({ platform, filings, cap }) => ({
      ...{ used: filings, of: cap },
      text: `${platform} has made ${filings} filings this year; its cap is ${cap}: artseal platform set --filing-cap changes it`,
    })),
  ];
  const near = uses.filter(({ used, of }) => used >= warnedShare * of);
  if (near.length > 0) return near.map(({ text }) => warning(text));
  return [ok(usedOf(filingNumbers, filingSequenceMax, 'filing numbers'))];
}

const usedOf = (used: number, max: number, what: string): string =>
  `${used} of ${max} ${what} of this year are used`;
