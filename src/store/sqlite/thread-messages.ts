import type { SchemaUpgrade, StorageErrors, StoreRequest } from '../store.ts';
import type { Reply } from './call-transaction.ts';
import type { Core, CoreMetrics } from './core.ts';
import type { Credentials } from './credentials.ts';
import { DatabaseError } from './location.ts';

/** Whose events there are to read since it was last told. */
export type EventNews = ReturnType<Core['takeEventNews']>;

/** What the thread of the store is asked. It answers in the order in which it is asked. */
export type WorkerRequest =
  | { readonly kind: 'EXECUTE'; readonly units: readonly StoreRequest[] }
  | { readonly kind: 'BEGIN_SERVING' | 'LOOK' | 'READ_FIGURES' | 'CLOSE' };

/** What the thread tells: answers, and, unasked, OPENED once and LOOKED when something has changed. */
export type WorkerResponse =
  | {
      readonly kind: 'EXECUTED';
      readonly replies: readonly Reply[];
      /** If they may have changed; so it is wherever credentials are told. */
      readonly credentials: Credentials | undefined;
      /** If there are more than were sent before; so it is in each message that has them. */
      readonly storageErrors: StorageErrors | undefined;
      readonly events: EventNews;
    }
  | { readonly kind: 'DONE' }
  | { readonly kind: 'FIGURES'; readonly metrics: CoreMetrics }
  | { readonly kind: 'FAILED'; readonly error: WorkerError }
  | {
      readonly kind: 'OPENED';
      readonly secret: Uint8Array;
      readonly checkedMs: number | undefined;
      readonly upgrade: SchemaUpgrade | undefined;
      readonly credentials: Credentials | undefined;
      readonly fault: string | undefined;
    }
  | {
      readonly kind: 'LOOKED';
      readonly credentials: Credentials | undefined;
      /** What is wrong with the files. */
      readonly fault: string | undefined;
      readonly storageErrors: StorageErrors | undefined;
      readonly events: EventNews;
    };

/** An error as plain data. */
export interface WorkerError {
  readonly isDatabaseError: boolean;
  readonly message: string;
  readonly stack: string | undefined;
}

/** The data of an error. */
export function toWorkerError(error: unknown): WorkerError {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { isDatabaseError: error instanceof DatabaseError, message, stack };
}

/** The error that was told. */
export function errorOf({ isDatabaseError, message, stack }: WorkerError): Error {
  if (isDatabaseError) return new DatabaseError(message);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
