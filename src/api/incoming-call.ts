import type { DescMethodServerStreaming, DescMethodUnary, Message } from '@bufbuild/protobuf';
import type { ApiError } from '../domain/reason.ts';
import type { Violation } from '../domain/violation.ts';
import type { SignedRequest } from './authentication.ts';
import type { SentCredentials } from './credentials.ts';
import type { Limits } from './limits.ts';

/** A signed call as it came in. Its functions are called in this order, each once at most. */
export interface SignedCall extends Omit<SignedRequest, 'body'> {
  readonly credentials: SentCredentials;
  /** Reads the body. Throws ApiError; what else it throws is passed on. */
  readBody(): Promise<Uint8Array>;
  /** Finds what is called. Throws ApiError. */
  route(body: Uint8Array): RoutedCall;
}

/** A call whose operation is known. */
export interface RoutedCall {
  readonly method: DescMethodUnary;
  /** The Idempotency-Key as often as it was sent. */
  readonly idempotencyKeys: readonly string[];
  /** Whether it is not counted against the quota; left out, it is where there is one. */
  readonly isFreeOfQuota?: boolean;
  /** Called each time that the call begins to wait for what others do. */
  onPause?(): void;
  /** Reads the message. Throws ApiError. */
  read(): Reading;
}

/** A call that is answered by a stream. */
export interface StreamedCall {
  readonly method: DescMethodServerStreaming;
  readonly message: Message;
  /** Aborted when nobody takes answers any more, or none are to be given. */
  readonly signal: AbortSignal;
}

/** The message of a call, and what was wrong with it; fields with violations keep their default. */
export interface Reading {
  readonly message: Message;
  readonly violations: readonly Violation[];
}

/** What a call came to; all that it tells is durable. */
export interface CallResult {
  /** The answer, or why there is none. */
  readonly answer: Message | ApiError;
  /**
   * Whether it is what became of an earlier call under the same Idempotency-Key. That call may have been answered otherwise:
   * with PAYMENT_PENDING, as long as this was not known.
   */
  readonly isReplay: boolean;
  /** Id of that call. */
  readonly answeredTo?: string | undefined;
  /** Of an authenticated platform. */
  readonly limits?: Limits | undefined;
}
