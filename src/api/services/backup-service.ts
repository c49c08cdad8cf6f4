import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Backup_NumberGap_Kind,
  type BackupSchema,
  BackupService,
} from '../../../gen/artseal/v1/backup_pb.ts';
import type { BackupFacts, BackupOutput, BackupVerdict, Rotated } from '../../domain/backup.ts';
import { checkRange, type Violation } from '../../domain/violation.ts';
import { type Implementation, implement } from '../operation.ts';
import type { Principal } from '../principal.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** Bounds of RotateBackups, as its proto says. */
const keepMax = 1_000;
const olderThanS = { min: 60, max: 1_728_000 } as const;

/** The operations of BackupService. A child process does the work. */
export function createBackupService({ backups }: ServiceDependencies): Implementation {
  return implement(BackupService, 'operate', {
    createBackup: {
      check: ({ file }) => checkGiven('file', file),
      run: async function* (request, { principal, signal }) {
        const file = await backups.places.newFile(request.file, isLocal(principal));
        for await (const output of backups.run<BackupFacts>([file], signal))
          yield responseOf(output, 'backup', backupMessage);
      },
    },
    rotateBackups: {
      check: ({ keep, ifOlderThanSeconds: olderS }, principal) => [
        ...checkKeep(keep, isLocal(principal) ? 1 : backups.keepMin),
        ...(olderS === undefined ? [] : checkRange('ifOlderThanSeconds', olderS, olderThanS)),
      ],
      run: async function* ({ into, keep, ifOlderThanSeconds: olderS }, { principal, signal }) {
        const folder = await backups.places.folder(into, isLocal(principal));
        const unlessYoung = olderS === undefined ? [] : ['--if-older-than', `${olderS}s`];
        const words = ['rotate', '--into', folder, '--keep', String(keep), ...unlessYoung];
        for await (const output of backups.run<Rotated>(words, signal))
          yield responseOf(output, 'rotation', rotationMessage);
      },
    },
    verifyBackup: {
      check: ({ file }) => checkGiven('file', file),
      run: async function* (request, { principal, signal }) {
        const file = await backups.places.existingFile(request.file, isLocal(principal));
        for await (const output of backups.run<BackupVerdict>(['verify', file], signal))
          yield responseOf(output, 'verdict', verdictMessage);
      },
    },
  });
}

/** Whether a call comes from a user of the machine. */
const isLocal = ({ kind }: Principal): boolean => kind === 'local';

function checkGiven(field: string, text: string): Violation[] {
  return text === '' ? [{ field, rule: 'is required' }] : [];
}

function checkKeep(keep: number, min: number): Violation[] {
  if (keep >= min && keep <= keepMax) return [];
  const why = min > 1 ? ': a token cannot remove backups that ARTSEAL_BACKUP_KEEP keeps' : '';
  return [{ field: 'keep', rule: `must be an integer from ${min} to ${keepMax}${why}` }];
}

/** The response with a step of a child, or with its result as the field `name`. */
function responseOf<Result extends object, Name extends string, Value>(
  output: BackupOutput<Result>,
  name: Name,
  message: (result: Result) => Value,
) {
  if (!('progress' in output)) return { response: { case: name, value: message(output) } };
  const { step, done, total } = output.progress;
  return {
    response: { case: 'progress' as const, value: { step, done: BigInt(done), total: BigInt(total) } },
  };
}

const rotationMessage = ({ removed, broken, ...rotated }: Rotated) => ({
  ...{ ...rotated, removed: [...removed], broken: [...broken] },
});

const verdictMessage = ({ backup, faults }: BackupVerdict) => ({
  ...{ backup: backupMessage(backup), faults: [...faults] },
});

function backupMessage(facts: BackupFacts): MessageInitShape<typeof BackupSchema> {
  const { filings, lastFilingNo = '', orders, numberGaps, masterKeys } = facts;
  return {
    ...facts,
    lastFilingNo,
    filings: BigInt(filings),
    orders: BigInt(orders),
    numberGaps: numberGaps.map((gap) => ({ ...gap, kind: Backup_NumberGap_Kind[gap.kind] })),
    masterKeys: [...masterKeys],
  };
}
