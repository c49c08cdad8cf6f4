import type { SchemaUpgrade, StorageErrors, StoreRequest } from '../store.ts';
import type { Reply } from './call-transaction.ts';
import type { Core, CoreMetrics } from './core.ts';
import type { Credentials } from './credentials.ts';
import { DatabaseError } from './location.ts';

/** The callers that have events to read since the last message. */
export type EventNews = ReturnType<Core['takeEventNews']>;

/** A request to the thread of the store. The thread responds in the order of the requests. */
export type WorkerRequest =
  | { readonly kind: 'EXECUTE'; readonly batch: readonly StoreRequest[] }
  | { readonly kind: 'BEGIN_SERVING' | 'REFRESH' | 'READ_METRICS' | 'CLOSE' };

/** A message of the thread: the response to a request, or OPENED once and CHANGED when something has changed. */
export type WorkerResponse =
  | {
      readonly kind: 'EXECUTED';
      readonly replies: readonly Reply[];
      /** Undefined if they cannot have changed; so in all messages. */
      readonly credentials: Credentials | undefined;
      /** Undefined if they were sent before; so in all messages. */
      readonly storageErrors: StorageErrors | undefined;
      readonly events: EventNews;
    }
  | { readonly kind: 'DONE' }
  | { readonly kind: 'METRICS'; readonly metrics: CoreMetrics }
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
      readonly kind: 'CHANGED';
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

/** The error of its data. */
export function errorOf({ isDatabaseError, message, stack }: WorkerError): Error {
  if (isDatabaseError) return new DatabaseError(message);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
