/** What came of sending something to an endpoint. */
export interface WebhookAnswer {
  /** Null if no answer came. */
  readonly httpStatus: number | null;
  /** The first bytes of the answer; null if none came. */
  readonly answer: Uint8Array | null;
  /** Why it did not arrive; null if it did. */
  readonly error: string | null;
}

/** The members of messages that tell of it: bytes that are not UTF-8 become U+FFFD. */
export function answerFields({ httpStatus, answer, error }: WebhookAnswer): {
  readonly httpStatus?: number;
  readonly answer?: string;
  readonly error?: string;
} {
  return {
    ...(httpStatus !== null && { httpStatus }),
    ...(answer !== null && { answer: Buffer.from(answer).toString() }),
    ...(error !== null && { error }),
  };
}
