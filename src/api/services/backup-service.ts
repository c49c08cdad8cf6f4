import { type DescMessage, fromJson, type JsonObject, type MessageShape } from '@bufbuild/protobuf';
import {
  BackupService,
  CreateBackupResponseSchema,
  RotateBackupsResponseSchema,
  VerifyBackupResponseSchema,
} from '../../../gen/artseal/v1/backup_pb.ts';
import { checkRange, type Violation } from '../../domain/violation.ts';
import { type Implementation, implement, type Principal } from '../operation.ts';
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
        yield* responsesOf(CreateBackupResponseSchema, 'backup', backups.run([file], signal));
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
        yield* responsesOf(RotateBackupsResponseSchema, 'rotation', backups.run(words, signal));
      },
    },
    verifyBackup: {
      check: ({ file }) => checkGiven('file', file),
      run: async function* (request, { principal, signal }) {
        const file = await backups.places.existingFile(request.file, isLocal(principal));
        yield* responsesOf(VerifyBackupResponseSchema, 'verdict', backups.run(['verify', file], signal));
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

/** The responses for what a child prints: its steps, and its result as the field `name`. */
async function* responsesOf<S extends DescMessage>(
  schema: S,
  name: string,
  outputs: AsyncIterable<object>,
): AsyncGenerator<MessageShape<S>> {
  for await (const output of outputs)
    yield fromJson(schema, ('progress' in output ? output : { [name]: output }) as JsonObject);
}
