import { escrowSequenceMax } from '../domain/escrow-id.ts';
import { filingSequenceMax } from '../domain/filing.ts';
import type { UsedNumbers } from '../store/sqlite/inspection.ts';
import { type Finding, findingsOf } from './finding.ts';

/** The share of the numbers of a year that, once used, is warned of. */
const warnedShare = 0.8;

/** Whether numbers of the year run out: of the registry, or of a platform that has a cap on filings. */
export function checkNumbers({ filingNumbers, escrowNumbers, caps }: UsedNumbers): Finding[] {
  const { ok, warning } = findingsOf('numbers');
  const uses = [
    { text: 'filing numbers of this year are used', used: filingNumbers, of: filingSequenceMax },
    { text: 'escrow ids of this year are used', used: escrowNumbers, of: escrowSequenceMax },
    ...caps.map(({ platform, filings, cap }) => ({
      text: `filings that ${platform} may make this year are made: artseal platform set --filing-cap changes that`,
      ...{ used: filings, of: cap },
    })),
  ];
  const near = uses.filter(({ used, of }) => used >= warnedShare * of);
  if (near.length > 0) return near.map(({ text, used, of }) => warning(`${used} of ${of} ${text}`));
  return [ok(`${filingNumbers} of ${filingSequenceMax} filing numbers of this year are used`)];
}
