import { create } from '@bufbuild/protobuf';
import { type Backup, Backup_NumberGap_Kind, BackupSchema } from '../../gen/artseal/v1/backup_pb.ts';
import { checkFilingNumber, filingNumber } from '../domain/filing.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Manifest } from '../operations/backup/manifest.ts';
import type { NumberGap } from '../store/handlers/restorations.ts';
import { UsageError, type Words } from './command.ts';
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

/** The help of `--numbers-after`. */
export const numbersAfterHelp: readonly string[] = [
  '--numbers-after AS-2026-000123  is the last filing number that was given out, as platforms and logs know it. Without it the',
  '                                new numbers begin after a gap that no service can have filled.',
];

/** Reads the last filing number that was given out; undefined without the flag. Throws UsageError. */
export function readNumbersAfter(words: Words): string | undefined {
  const numbersAfter = words.text('numbers-after');
  if (numbersAfter !== undefined && checkFilingNumber('', numbersAfter).length > 0)
    throw new UsageError(`needs --numbers-after AS-<year>-<6 digits>, not '${numbersAfter}'`);
  return numbersAfter;
}

/** What to do about access after a restore. */
export const keysOfBackup =
  'keys, tokens and suspensions are those of the backup: revoke and suspend again what was changed since';

/**
 * What to do about an evidence log that may have been published further than the backup. `keepFile` says what to do with the
 * checkpoint file; `env` is what stands before the command.
 */
export const forkFirst = (keepFile: string, env: string): string[] => [
  'the evidence log was published, and serve rejects a registry that lacks published leaves:',
  `${keepFile}. If artseal check then prints a fault for the evidence log, run`,
  `${env}artseal evidence fork: it says what is wrong, and with --accept begins a new log that names the last checkpoint`,
];
