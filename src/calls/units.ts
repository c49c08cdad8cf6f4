import { asRefusal, Refusal } from '../domain/reason.ts';
import { refusalData, refusalOf } from '../domain/violation.ts';
import type {
  Admission,
  AdmissionFault,
  Command,
  Execute,
  IdempotencyClaim,
  Kind,
  Outcome,
  Store,
} from '../store/store.ts';
import { keyReused } from './idempotency.ts';

/** What one call submits to the store: its admission goes with the first unit, whatever that is. */
export interface Units {
  /** Has the call known by an idempotency key. Before the first unit. */
  claim(idempotency: IdempotencyClaim): void;
  /** Has the call counted. Before the first unit. */
  takeQuota(): void;
  /** Carries a command out. Throws the Refusal that it, or the call's admission, meets. */
  readonly execute: Execute;
  /** Stores the admission, if no unit did yet. Throws the Refusal that it meets. */
  admit(): Promise<void>;
  /** The same for a call that is refused with `error`, which its idempotency key then stands for. */
  admitRefused(error: unknown): Promise<void>;
  /** Whether the call got what an earlier one was given. */
  isReplay(): boolean;
  /** Id of the earlier call that claimed its idempotency key, if one did. */
  claimedBy(): string | undefined;
  /** Calls counted in the month, as far as is known. */
  calls(): number | undefined;
}

/** What came of the effect of a unit that was let in. */
type Admitted<K extends Kind> = Exclude<Outcome<K>, { readonly kind: 'NOT_ADMITTED' }>;

/** The units of one call; `exceeded` makes the refusal of a call beyond the quota, of which so many were counted. */
export function createUnits(
  store: Pick<Store, 'execute'>,
  admission: Admission,
  exceeded: (calls: number) => Refusal,
): Units {
  let pending: Admission | undefined = admission;
  let isReplay = false;
  let calls: number | undefined;
  let claimedBy: string | undefined;

  async function submit<K extends Kind>(effect: Command<K> | undefined): Promise<Admitted<K>> {
    const unit = { admission: pending, effect };
    pending = undefined;
    const executed = await store.execute<K>(unit);
    const { outcome } = executed;
    calls ??= executed.calls;
    claimedBy ??= executed.claimedBy;
    if (outcome.kind === 'NOT_ADMITTED') throw notAdmitted(outcome.why);
    isReplay ||= outcome.isReplay;
    return outcome;
  }

  function notAdmitted(why: AdmissionFault): Refusal {
    switch (why) {
      case 'NONCE_REUSED':
        return new Refusal(
          'NONCE_REUSED',
          'The nonce was used before; every request, a retry too, needs a new one.',
        );
      case 'IDEMPOTENCY_KEY_REUSED':
        return keyReused();
      case 'QUOTA_EXCEEDED':
        return exceeded(calls ?? 0);
    }
  }

  return {
    claim: (idempotency) => {
      if (pending !== undefined) pending = { ...pending, idempotency };
    },
    takeQuota: () => {
      if (pending?.quota !== undefined) pending = { ...pending, quota: { ...pending.quota, take: true } };
    },
    execute: async (command) => {
      const outcome = await submit(command);
      if (outcome.kind === 'DONE') return outcome.result;
      throw refusalOf(outcome.refusal);
    },
    admit: async () => {
      if (pending !== undefined) await submit(undefined);
    },
    admitRefused: async (error) => {
      if (pending !== undefined) await submit({ kind: 'Refuse', refusal: refusalData(asRefusal(error)) });
    },
    isReplay: () => isReplay,
    claimedBy: () => claimedBy,
    calls: () => calls,
  };
}
