import { ApiError, unavailable } from '../../domain/reason.ts';
import type { IncidentCounts, StorageErrors } from '../store.ts';

/** Why a request failed, as plain data that can cross threads. */
export interface Failure {
  /** Whether a stored record does not match the evidence log. */
  readonly isDamaged?: boolean;
  /** Whether the store cannot take or keep the request now. Otherwise it is an internal error. */
  readonly isUnavailable: boolean;
  readonly message: string;
  /** For the operator. */
  readonly cause?: string | undefined;
}

/** The message for a request that was not begun. */
export const cannotWork = 'The store cannot be written or read now.';
/** The message for a write that was running when the files were removed or the store's thread ended. */
export const fateUnknown =
  'It is not known whether this was stored; read it, or repeat the call with the same Idempotency-Key.';
const nothingStored = 'The store could not keep the write; nothing was stored.';

/** The database files were moved, deleted or replaced. */
export class DatabaseFileReplaced extends Error {}

/** A stored record, or the log itself, does not match the evidence log. The message is for the operator. */
export class RecordDamaged extends Error {}

const damagedMessage =
  'The stored record does not match the evidence log, so it is not returned. The operator has to restore it.';

/** SQLite result codes for faults of the machine: disk, memory, or a lock of a tool that has the file open. */
const machineFaults = /^SQLITE_(FULL|BUSY|LOCKED|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)/;

/** Whether an error comes from the machine: its disk, its memory, or a tool that locks the database. */
export function isMachineFault(error: unknown): error is Error {
  return error instanceof DatabaseFileReplaced || machineFaults.test(codeOf(error));
}

/** Whether an error says that the file is damaged or not a database. */
export function isDamage(error: unknown): error is Error {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error));
}

/** Whether an error says that another connection locks the file. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}

/** Whether an error says that a row breaks a rule of its table. */
export function isConstraintFailure(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_CONSTRAINT');
}

/** The failure of a batch because of the machine. */
export function machineFailure(error: unknown, isWriting: boolean): Failure {
  if (!isWriting) return unavailableFor(cannotWork, error);
  // A commit whose fsync failed may still be on disk after a crash.
  return unavailableFor(codeOf(error).startsWith('SQLITE_IOERR') ? fateUnknown : nothingStored, error);
}

/** The failure of a request that the store cannot take or keep. `message` is for the caller, `cause` for the operator. */
export function unavailableFor(message: string, cause: unknown): Failure {
  return { isUnavailable: true, message, cause: cause instanceof Error ? cause.message : String(cause) };
}

/** The failure of a request because of an internal error. */
export function internalError(error: unknown): Failure {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { isUnavailable: false, isDamaged: error instanceof RecordDamaged, message, cause: stack };
}

/** The error that a request rejects with. */
export function asError({ isUnavailable, isDamaged, message, cause }: Failure): Error | ApiError {
  if (isDamaged) return new ApiError('RECORD_DAMAGED', damagedMessage, {}, { cause: new Error(message) });
  if (isUnavailable) return unavailable(message, new Error(cause));
  const error = new Error(message);
  if (cause !== undefined) error.stack = cause;
  return error;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** As `createIncidents` makes it. */
export type Incidents = ReturnType<typeof createIncidents>;

/** Counts incidents since the store was opened. */
export function createIncidents() {
  const counts = { clockRejections: 0, damagedRecords: 0 };
  let errors = noStorageErrors;
  return {
    count: (what: keyof IncidentCounts) => {
      counts[what] += 1;
    },
    /** Counts an error of a write or a read if it is a storage error. */
    meet: (error: unknown, access: 'write' | 'read') => {
      if (isDamage(error)) {
        counts.damagedRecords += 1;
        errors = { ...errors, damage: errors.damage ?? error.message };
      } else if (isMachineFault(error) && !isBusy(error)) {
        const lastFailure = `a ${access} failed: ${error.message}`;
        errors = { ...errors, failures: errors.failures + 1, lastFailure };
      }
    },
    counts: (): IncidentCounts => ({ ...counts }),
    /** The same object until there is another error. */
    storageErrors: (): StorageErrors => errors,
  };
}

/** The errors of a store that was just opened. */
export const noStorageErrors: StorageErrors = { failures: 0, lastFailure: undefined, damage: undefined };
