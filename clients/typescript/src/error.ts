/** What an `ArtsealError` has beside its message. */
export interface ErrorDetails {
  readonly code: string;
  readonly status?: number;
  readonly requestId?: string | undefined;
  readonly help?: string | undefined;
}

/** The one error of calls. Decide by `code`. */
export class ArtsealError extends Error {
  override readonly name = 'ArtsealError';
  /**
   * The code of the API, such as `VALIDATION_FAILED`; `NO_RESPONSE` if the last try got no response, so that the result of a
   * write is unknown; `BAD_RESPONSE` if what came is not a response of Artseal.
   */
  readonly code: string;
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  /** Send it to the operator with every question. */
  readonly requestId: string | undefined;
  /** The page that explains the code. */
  readonly help: string | undefined;

  constructor(message: string, { code, status = 0, requestId, help }: ErrorDetails, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.help = help;
  }
}
