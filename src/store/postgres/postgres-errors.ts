import type { ClassifyError } from '../engine/failure.ts';

/**
 * SQLSTATEs for faults of the machine or its administration, besides those of `lostSessions`: a server that takes no writes now
 * (25006), no resources (53), a cancelled statement (57014), a server that stops or starts (57P), an error of the operating system
 * (58).
 */
const machineFaults = /^(25006|53...|57014|57P..|58...)$/;

/**
 * SQLSTATEs of a session that is lost: no connection (08, but for a broken protocol), a session that was ended because it was idle in
 * a transaction (25P03, 25P04) or by an administrator or a server that stops or starts (57P01 to 57P03).
 */
const lostSessions = /^(08(?!P01)...|25P0[34]|57P0[123])$/;

/** Codes of Node.js for a connection that is lost or cannot be made. */
const connectionFaults =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN)$/;

/** Errors of pg itself have no code. These say that the connection is gone; the versions of pg are pinned. */
const lostConnections: readonly string[] = [
  'Connection terminated unexpectedly',
  'Connection terminated',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Query read timeout',
];

/** Whether an error comes from the machine: the connection, the server, its disk, or its memory. */
export function isMachineFault(error: unknown): error is Error {
  return machineFaults.test(codeOf(error)) || isLostSession(error);
}

/** Whether an error says that the session is lost: the server has ended it, or the connection broke. */
export function isLostSession(error: unknown): boolean {
  const code = codeOf(error);
  if (lostSessions.test(code) || connectionFaults.test(code)) return true;
  return chainOf(error).some(({ message }) => lostConnections.includes(message));
}

/** Throws an error again that does not come from the machine. */
export function rejectUnlessMachineFault(error: unknown): void {
  if (!isMachineFault(error)) throw error;
}

/** Whether an error says that data or an index are damaged. */
export function isDamage(error: unknown): error is Error {
  return /^XX00[12]$/.test(codeOf(error));
}

/** SQLSTATEs of a transaction that another one was in the way of. */
export const repeatable: readonly string[] = ['40001', '40P01', '55P03'];

/** The SQLSTATE of a query in a transaction that has failed. */
export const abortedTransaction = '25P02';

/** Whether the transaction may succeed if it is repeated. */
export function isRepeatable(error: unknown): boolean {
  return repeatable.includes(codeOf(error));
}

/** As `createIncidents` asks. That another transaction was in the way is neither. */
export const classifyError: ClassifyError = (error) => {
  if (isDamage(error)) return 'DAMAGE';
  return isMachineFault(error) ? 'FAULT' : undefined;
};

/** The SQLSTATE, or the code of Node.js; empty if there is none. */
export function codeOf(error: unknown): string {
  const coded = chainOf(error).find((one) => 'code' in one && typeof one.code === 'string');
  return coded === undefined ? '' : String((coded as NodeJS.ErrnoException).code);
}

/** An error and its causes: drizzle wraps the errors of the driver. */
function chainOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...chainOf(error.cause)] : [];
}
