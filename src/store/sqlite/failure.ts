import { ApiError, unavailable } from '../../domain/reason.ts';

/** Why a unit was not executed, as plain data that crosses threads. */
export interface Failure {
  /** Whether a stored record is not what the evidence log committed to. */
  readonly isDamaged?: boolean;
  /** Whether the store cannot take or keep it now; otherwise something is wrong with the service. */
  readonly isUnavailable: boolean;
  readonly message: string;
  /** For the operator. */
  readonly cause?: string | undefined;
}

/** What callers are told whose unit was not begun. */
export const cannotWork = 'The store cannot be written or read now.';
/** What callers are told whose write was under way when the files were taken away or the thread of the store ended. */
export const fateUnknown =
  'It is not known whether this was stored; ask for it, or repeat the call under the same Idempotency-Key.';
const nothingStored = 'The store could not keep the write; nothing was stored.';

/** The files of the database are not in their place. */
export class DatabaseFileReplaced extends Error {}

/** A stored record, or the log itself, is not what the evidence log committed to. The message is for the operator. */
export class RecordDamaged extends Error {}

/** What callers read of that. */
const damagedMessage =
  'What is stored is not what the evidence log committed to, so nothing of it is returned. The operator has to restore it.';

/** SQLite's result codes that say that the machine, not the service, is at fault. */
const machineFaults = /^SQLITE_(FULL|BUSY|LOCKED|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)/;

/** Whether the machine is at fault for an error: its disk, its memory, or another process that holds the database. */
export function isMachineFault(error: unknown): error is Error {
  return error instanceof DatabaseFileReplaced || machineFaults.test(codeOf(error));
}

/** Whether an error says that a database is damaged, or that a file is none. */
export function isDamage(error: unknown): error is Error {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(error));
}

/** Whether an error says that another process holds the database. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}

/** The failure of a batch for which the machine is at fault. */
export function machineFailure(error: unknown, isWriting: boolean): Failure {
  if (!isWriting) return unavailableFor(cannotWork, error);
  // A commit that could not be synchronised may be found on disk if the machine stops before the next one.
  return unavailableFor(codeOf(error).startsWith('SQLITE_IOERR') ? fateUnknown : nothingStored, error);
}

/** The failure of a unit that the store cannot take or keep: what its caller is told, and why. */
export function unavailableFor(message: string, cause: unknown): Failure {
  return { isUnavailable: true, message, cause: cause instanceof Error ? cause.message : String(cause) };
}

/** The failure of a unit for which the service is at fault. */
export function internalError(error: unknown): Failure {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { isUnavailable: false, isDamaged: error instanceof RecordDamaged, message, cause: stack };
}

/** What a failure rejects its unit with. */
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
