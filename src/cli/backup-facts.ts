import { create } from '@bufbuild/protobuf';
import { type Backup, Backup_NumberGap_Kind, BackupSchema } from '../../gen/artseal/v1/backup_pb.ts';
import { filingNumber } from '../domain/filing.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Manifest } from '../operations/backup/manifest.ts';
import type { NumberGap } from '../store/handlers/restorations.ts';
import { wordIn } from './session.ts';

/** What a backup contains, as BackupService returns it. */
export function factsOfBackup(file: string, { takenAt, database, ...manifest }: Manifest): Backup {
  const { environment, currency, schema, filings, lastFilings, orders, numberGaps } = database;
  const { artseal, masterKeys, holdsMasterKeys } = manifest;
  return create(BackupSchema, {
    ...{ file, environment, currency, takenAt, artseal, schema, holdsMasterKeys },
    filings: BigInt(filings),
    lastFilingNo: Object.values(lastFilings).at(-1) ?? '',
    orders: BigInt(orders),
    numberGaps: numberGaps.map(({ kind, restoredAtS, ...gap }) => ({
      ...{ ...gap, kind: Backup_NumberGap_Kind[kind], restoredAt: utcTimestamp(restoredAtS * 1_000) },
    })),
    masterKeys: [...masterKeys],
  });
}

/** Describes a backup. */
export function described(backup: Backup): string[] {
  const { file, environment, currency, takenAt, artseal, schema } = backup;
  const { filings, lastFilingNo, orders, numberGaps, masterKeys, holdsMasterKeys } = backup;
  const keys = masterKeys.join(', ');
  return [
    `${file}: ${environment}, ${currency}, taken ${takenAt} by artseal ${artseal}, schema ${schema}`,
    `${filings} filings${lastFilingNo === '' ? '' : ` to ${lastFilingNo}`}, ${orders} escrow orders`,
    ...numberGaps.map(({ kind, restoredAt, ...gap }) => {
      const skipped = gapLine({ kind: wordIn(Backup_NumberGap_Kind, kind), ...gap });
      return `${skipped} (restored ${restoredAt})`;
    }),
    ...(keys === ''
      ? []
      : holdsMasterKeys
        ? [`it contains the master key of the sandbox (its secrets are encrypted with: ${keys})`]
        : [`THE MASTER KEY IS NOT IN IT. Only these decrypt its secrets; keep them elsewhere: ${keys}`]),
  ];
}

/** Describes skipped numbers. */
export function gapLine({
  kind,
  year,
  after,
  through,
}: Pick<NumberGap, 'year' | 'after' | 'through'> & { kind: string }): string {
  return kind === 'FILING'
    ? `skipped: ${filingNumber(year, after + 1)} to ${filingNumber(year, through)}`
    : `skipped: ${through - after} escrow ids of ${year}`;
}
