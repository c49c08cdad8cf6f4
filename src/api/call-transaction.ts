import { ApiError, toApiError } from '../domain/reason.ts';
import { apiErrorData, errorOf } from '../domain/violation.ts';
import type {
  Admission,
  AdmissionFault,
  Command,
  CommandResult,
  Execute,
  Executed,
  IdempotencyClaim,
  Kind,
  Result,
  Store,
  StoreRequest,
} from '../store/store.ts';
import { keyReused } from './idempotency.ts';

/** The result of a store request whose admission succeeded. */
type Admitted<K extends Kind> = Exclude<CommandResult<K>, { readonly kind: 'NOT_ADMITTED' }>;

/** The store requests of one call. The first of them carries the admission of the call: nonce, idempotency key and quota. */
export class CallTransaction {
  readonly #store: Pick<Store, 'execute'>;
  readonly #share: number;
  readonly #exceeded: (calls: number) => ApiError;
  /** Undefined once the first store request is made. */
  #admission: Admission | undefined;
  /** Set once the first store request is made. */
  #claim: IdempotencyClaim | undefined;
  #isReplay = false;
  #claimedBy: string | undefined;
  #calls: number | undefined;

  /** `share` is `StoreRequest.share`; `exceeded` makes the error of a call above the quota from the counted calls. */
  constructor(
    store: Pick<Store, 'execute'>,
    share: number,
    admission: Admission,
    exceeded: (calls: number) => ApiError,
  ) {
    this.#store = store;
    this.#share = share;
    this.#admission = admission;
    this.#exceeded = exceeded;
  }

  /** Adds an idempotency key to the admission. Call it before the first store request. */
  claim(idempotency: IdempotencyClaim): void {
    if (this.#admission !== undefined) this.#admission = { ...this.#admission, idempotency };
  }

  /** Counts the call against its quota. Call it before the first store request. */
  takeQuota(): void {
    const admission = this.#admission;
    if (admission?.quota !== undefined) {
      this.#admission = { ...admission, quota: { ...admission.quota, take: true } };
    }
  }

  /** Runs a command. Throws the ApiError of the command or of the admission. */
  readonly execute: Execute = (command) => this.#perform(this.#request(command));

  /** Runs a further command; its result replaces the one stored under the call's idempotency key. */
  readonly executeNext: Execute = (command) =>
    this.#perform({ ...this.#request(command), continues: this.#claim });

  /** Stores the admission, if no command did. Throws its ApiError. */
  async admit(): Promise<void> {
    if (this.#admission !== undefined) this.#admitted(await this.#store.execute(this.#request(undefined)));
  }

  /**
   * Returns the error of a call that failed with `error`. If no store request was made yet, this stores the admission with the
   * error as its result, and returns the admission's own error if there is one.
   */
  async reject(error: unknown): Promise<ApiError> {
    const apiError = toApiError(error);
    if (this.#admission === undefined) return apiError;
    try {
      const request = this.#request({ kind: 'Reject', apiError: apiErrorData(apiError) });
      this.#admitted(await this.#store.execute(request));
      return apiError;
    } catch (notAdmitted) {
      return toApiError(notAdmitted);
    }
  }

  /** Whether the result is the stored result of an earlier call. */
  get isReplay(): boolean {
    return this.#isReplay;
  }

  /** Request id of the earlier call with the same idempotency key. */
  get claimedBy(): string | undefined {
    return this.#claimedBy;
  }

  /** Counted calls of the month, once the store has returned them. */
  get calls(): number | undefined {
    return this.#calls;
  }

  async #perform<K extends Kind>(request: StoreRequest<K>): Promise<Result<K>> {
    const result = this.#admitted(await this.#store.execute(request));
    if (result.kind === 'DONE') return result.result;
    throw errorOf(result.apiError);
  }

  #request<K extends Kind>(effect: Command<K> | undefined): StoreRequest<K> {
    const admission = isUnavailable(effect as Command | undefined)
      ? uncounted(this.#admission)
      : this.#admission;
    this.#claim ??= admission?.idempotency;
    this.#admission = undefined;
    return { share: this.#share, admission, effect };
  }

  #admitted<K extends Kind>({ outcome, calls, claimedBy }: Executed<K>): Admitted<K> {
    this.#calls ??= calls;
    this.#claimedBy ??= claimedBy;
    if (outcome.kind === 'NOT_ADMITTED') throw this.#notAdmitted(outcome.why);
    this.#isReplay ||= outcome.isReplay;
    return outcome;
  }

  #notAdmitted(why: AdmissionFault): ApiError {
    switch (why) {
      case 'NONCE_REUSED':
        return new ApiError(
          'NONCE_REUSED',
          'The nonce was used before. Every request needs a new one, a retry too.',
        );
      case 'IDEMPOTENCY_KEY_REUSED':
        return keyReused();
      case 'QUOTA_EXCEEDED':
        return this.#exceeded(this.#calls ?? 0);
    }
  }
}

/** Whether a command only records UNAVAILABLE. Such a call does not count against the quota. */
function isUnavailable(effect: Command | undefined): boolean {
  return effect?.kind === 'Reject' && effect.apiError.reason === 'UNAVAILABLE';
}

function uncounted(admission: Admission | undefined): Admission | undefined {
  return admission?.quota ? { ...admission, quota: { ...admission.quota, take: false } } : admission;
}
