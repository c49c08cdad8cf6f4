import { type Backup, Backup_NumberGap_Kind } from '../../gen/artseal/v1/backup_pb.ts';
import type { BackupFacts, SkippedNumbers } from '../domain/backup.ts';
import { filingNumber } from '../domain/filing.ts';

/** The facts of a backup in the response of a server. */
export function factsOfMessage(backup: Backup): BackupFacts {
  const { file, environment, currency, takenAt, artseal, schema, masterKeys, holdsMasterKeys } = backup;
  return {
    ...{ file, environment, currency, takenAt, artseal, schema },
    filings: Number(backup.filings),
    lastFilingNo: backup.lastFilingNo || undefined,
    orders: Number(backup.orders),
    numberGaps: backup.numberGaps.map(({ kind, year, after, through, restoredAt }) => {
      return {
        kind: kind === Backup_NumberGap_Kind.FILING ? 'FILING' : 'ESCROW',
        year,
        after,
        through,
        restoredAt,
      };
    }),
    ...{ masterKeys, holdsMasterKeys },
  };
}

/** Describes a backup. */
export function described(facts: BackupFacts): string[] {
  const { file, environment, currency, takenAt, artseal, schema } = facts;
  const { filings, lastFilingNo, orders, numberGaps, masterKeys, holdsMasterKeys } = facts;
  const keys = masterKeys.join(', ');
  return [
    `${file}: ${environment}, ${currency}, taken ${takenAt} by artseal ${artseal}, schema ${schema}`,
    `${filings} filings${lastFilingNo === undefined ? '' : ` to ${lastFilingNo}`}, ${orders} escrow orders`,
    ...numberGaps.map((gap) => `${gapLine(gap)} (restored ${gap.restoredAt})`),
    ...(keys === '' ? [] : [holdsMasterKeys ? holding(keys) : lacking(keys)]),
  ];
}

const holding = (keys: string): string =>
  `it contains the master key of the sandbox (its secrets are sealed under: ${keys})`;

const lacking = (keys: string): string =>
  `THE MASTER KEY IS NOT IN IT. Its secrets open only with these, which you must keep elsewhere: ${keys}`;

/** Describes skipped numbers. */
export function gapLine({ kind, year, after, through }: Omit<SkippedNumbers, 'restoredAt'>): string {
  return kind === 'FILING'
    ? `skipped: ${filingNumber(year, after + 1)} to ${filingNumber(year, through)}`
    : `skipped: ${through - after} escrow ids of ${year}`;
}
