import type { DescMethodServerStreaming, DescMethodUnary, Message } from '@bufbuild/protobuf';
import type { ApiError } from '../domain/reason.ts';
import type { Violation } from '../domain/violation.ts';
import type { SignedRequest } from './authentication.ts';
import type { SentCredentials } from './credentials.ts';
import type { Limits } from './limits.ts';

/** A signed call before its checks. The pipeline calls its functions in this order, each at most once. */
export interface SignedCall extends Omit<SignedRequest, 'body'> {
  readonly credentials: SentCredentials;
  /** Reads the body. Throws ApiError; the pipeline passes other errors on. */
  readBody(): Promise<Uint8Array>;
  /** Finds the operation. Throws ApiError. */
  route(body: Uint8Array): RoutedCall;
}

/** A call that was routed to an operation. */
export interface RoutedCall {
  readonly method: DescMethodUnary;
  /** All values sent for Idempotency-Key. */
  readonly idempotencyKeys: readonly string[];
  /** Whether the call does not count against the quota. */
  readonly isFreeOfQuota?: boolean;
  /** Called whenever the call begins to wait for another party, such as the payment provider. */
  onPause?(): void;
  /** Reads the message. Throws ApiError. */
  read(): Reading;
}

/** A call whose response is a stream. */
export interface StreamedCall {
  readonly method: DescMethodServerStreaming;
  readonly message: Message;
  /** Aborted when the client is gone or the server drains. */
  readonly signal: AbortSignal;
}

/** The message of a call and its violations. A field with a violation keeps its default. */
export interface Reading {
  readonly message: Message;
  readonly violations: readonly Violation[];
}

/** The result of a call. Everything in it is durable. */
export interface CallResult {
  readonly response: Message | ApiError;
  /**
   * Whether this is the stored result of an earlier call with the same Idempotency-Key. The earlier call itself may have
   * returned PAYMENT_PENDING, if the result was not yet known.
   */
  readonly isReplay: boolean;
  /** Request id of that call. */
  readonly originalRequestId?: string | undefined;
  /** Set for an authenticated platform. */
  readonly limits?: Limits | undefined;
}
