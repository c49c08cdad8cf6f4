import {
  type ClassifyError,
  cannotWork,
  type Failure,
  fateUnknown,
  nothingStored,
  unavailableFor,
} from '../engine/failure.ts';

/** The database files were moved, deleted or replaced. */
export class DatabaseFileReplaced extends Error {}

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

/** As `createIncidents` asks. That another connection locks the file is neither. */
export const classifyError: ClassifyError = (error) => {
  if (isDamage(error)) return 'DAMAGE';
  return isMachineFault(error) && !isBusy(error) ? 'FAULT' : undefined;
};

/** The failure of a batch because of the machine. */
export function machineFailure(error: unknown, isWriting: boolean): Failure {
  if (!isWriting) return unavailableFor(cannotWork, error);
  // A commit whose fsync failed may still be on disk after a crash.
  return unavailableFor(codeOf(error).startsWith('SQLITE_IOERR') ? fateUnknown : nothingStored, error);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
