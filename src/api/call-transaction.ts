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

/** What came of the effect of a unit that was let in. */
type Admitted<K extends Kind> = Exclude<CommandResult<K>, { readonly kind: 'NOT_ADMITTED' }>;

/** What one call submits to the store: its admission goes with the first unit, whatever that is. */
export class CallTransaction {
  readonly #store: Pick<Store, 'execute'>;
  readonly #share: number;
  readonly #exceeded: (calls: number) => ApiError;
  /** Until the first unit. */
  #admission: Admission | undefined;
  /** Once it is submitted. */
  #claim: IdempotencyClaim | undefined;
  #isReplay = false;
  #claimedBy: string | undefined;
  #calls: number | undefined;

  /**
   * `share` is that of the caller, as `StoreRequest.share`; `exceeded` makes the error of a call beyond the quota, of which so many
   * were counted.
   */
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

  /** Has the call known by an idempotency key. Before the first unit. */
  claim(idempotency: IdempotencyClaim): void {
    if (this.#admission !== undefined) this.#admission = { ...this.#admission, idempotency };
  }

  /** Has the call counted. Before the first unit. */
  takeQuota(): void {
    const admission = this.#admission;
    if (admission?.quota !== undefined) {
      this.#admission = { ...admission, quota: { ...admission.quota, take: true } };
    }
  }

  /** Carries a command out. Throws the ApiError that it, or the call's admission, meets. */
  readonly execute: Execute = (command) => this.#perform(this.#unit(command));

  /** The same for a further command, whose result is kept under the idempotency key of the call from then on. */
  readonly executeNext: Execute = (command) =>
    this.#perform({ ...this.#unit(command), continues: this.#claim });

  /** Stores the admission, if no unit did yet. Throws the ApiError that it meets. */
  async admit(): Promise<void> {
    if (this.#admission !== undefined) this.#admitted(await this.#store.execute(this.#unit(undefined)));
  }

  /**
   * The error of a call that failed with `error`, for which its idempotency key then stands; or, if no unit was
   * submitted yet, that which its admission meets.
   */
  async refused(error: unknown): Promise<ApiError> {
    const apiError = toApiError(error);
    if (this.#admission === undefined) return apiError;
    try {
      const unit = this.#unit({ kind: 'Refuse', apiError: apiErrorData(apiError) });
      this.#admitted(await this.#store.execute(unit));
      return apiError;
    } catch (notAdmitted) {
      return toApiError(notAdmitted);
    }
  }

  /** Whether the call got what an earlier one was given. */
  get isReplay(): boolean {
    return this.#isReplay;
  }

  /** Id of the earlier call that claimed its idempotency key, if one did. */
  get claimedBy(): string | undefined {
    return this.#claimedBy;
  }

  /** Calls counted in the month, as far as is known. */
  get calls(): number | undefined {
    return this.#calls;
  }

  async #perform<K extends Kind>(unit: StoreRequest<K>): Promise<Result<K>> {
    const outcome = this.#admitted(await this.#store.execute(unit));
    if (outcome.kind === 'DONE') return outcome.result;
    throw errorOf(outcome.apiError);
  }

  #unit<K extends Kind>(effect: Command<K> | undefined): StoreRequest<K> {
    const admission = isUnavailable(effect as Command | undefined)
      ? uncounted(this.#admission)
      : this.#admission;
    this.#claim ??= admission?.idempotency;
    this.#admission = undefined;
    return { share: this.#share, admission, effect };
  }

  /** What came of the effect of a unit. Throws the ApiError of a call that is not let in. */
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
          'The nonce was used before; every request, a retry too, needs a new one.',
        );
      case 'IDEMPOTENCY_KEY_REUSED':
        return keyReused();
      case 'QUOTA_EXCEEDED':
        return this.#exceeded(this.#calls ?? 0);
    }
  }
}

/** Whether all that a command does is to refuse the call for a fault of the service: such a call does not count. */
function isUnavailable(effect: Command | undefined): boolean {
  return effect?.kind === 'Refuse' && effect.apiError.reason === 'UNAVAILABLE';
}

function uncounted(admission: Admission | undefined): Admission | undefined {
  return admission?.quota ? { ...admission, quota: { ...admission.quota, take: false } } : admission;
}
