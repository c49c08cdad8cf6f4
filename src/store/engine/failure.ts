import { DrizzleQueryError } from 'drizzle-orm/errors';
import { ApiError, unavailable } from '../../domain/reason.ts';
import type { Executed, IncidentCounts, StorageErrors } from '../store.ts';

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

/** The error of the driver: drizzle wraps it in one whose message has the values of the query. */
export const driverError = (error: unknown): unknown =>
  error instanceof DrizzleQueryError ? error.cause : error;

/** The reply to a request: its result, or why it was not executed. */
export type Reply = Executed | Failed;

/** The reply to a request that was not executed. */
export interface Failed {
  readonly failure: Failure;
}

/** The database cannot be used by this deployment. The message is for the operator. */
export class DatabaseError extends Error {
  override name = 'DatabaseError';
}

/** The message for a request that was not begun. */
export const cannotWork = 'The store cannot be written or read now.';
/** The message for a write that was running when the files were removed or the store's thread ended. */
export const fateUnknown =
  'It is not known whether this was stored; read it, or repeat the call with the same Idempotency-Key.';
/** The message for a write that left nothing. */
export const nothingStored = 'The store could not keep the write; nothing was stored.';

/** A stored record, or the log itself, does not match the evidence log. The message is for the operator. */
export class RecordDamaged extends Error {}

const damagedMessage =
  'The stored record does not match the evidence log, so it is not returned. The operator has to restore it.';

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

/** As `createIncidents` makes it. */
export type Incidents = ReturnType<typeof createIncidents>;

/** What an error of the database says: its data are damaged, or the machine does not work; undefined if neither. */
export type ClassifyError = (error: unknown) => 'DAMAGE' | 'FAULT' | undefined;

/** Counts incidents since the store was opened. */
export function createIncidents(classify: ClassifyError) {
  const counts = { clockRejections: 0, damagedRecords: 0 };
  let errors = noStorageErrors;
  return {
    count: (what: keyof IncidentCounts) => {
      counts[what] += 1;
    },
    /** Counts an error of a write or a read if it is a storage error. */
    meet: (error: unknown, access: 'write' | 'read') => {
      const { message } = error instanceof Error ? error : new Error(String(error));
      const meaning = classify(error);
      if (meaning === 'DAMAGE') {
        counts.damagedRecords += 1;
        errors = { ...errors, damage: errors.damage ?? message };
      } else if (meaning === 'FAULT') {
        errors = { ...errors, failures: errors.failures + 1, lastFailure: `a ${access} failed: ${message}` };
      }
    },
    counts: (): IncidentCounts => ({ ...counts }),
    /** The same object until there is another error. */
    storageErrors: (): StorageErrors => errors,
  };
}

/** The errors of a store that was just opened. */
export const noStorageErrors: StorageErrors = { failures: 0, lastFailure: undefined, damage: undefined };
