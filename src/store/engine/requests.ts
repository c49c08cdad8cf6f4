import type { NewEvent } from '../../domain/event.ts';
import { usageThreshold } from '../../domain/event.ts';
import type {
  AdmissionFault,
  Command,
  CommandResult,
  IdempotencyClaim,
  Kind,
  NonceClaim,
  QuotaClaim,
  StoreRequest,
} from '../store.ts';
import type { Failed, Reply } from './failure.ts';
import type { Handlers } from './handlers.ts';
import type { ClaimResult } from './idempotency.ts';

/** What an engine executes requests with. The functions of the admission wait for nothing. */
export interface RequestParts {
  readonly handlers: Handlers;
  /** The commands that may change credentials. */
  readonly callers: ReadonlySet<string>;
  /** Spends a nonce at `nowS`; false if it is spent already. Nonces that have expired by `sweepAtS` may be deleted. */
  readonly spendNonce: (claim: NonceClaim, nowS: number, sweepAtS: number) => boolean;
  readonly keys: {
    /** Looks a key up; undefined if it is free. Keys that have expired by `sweepAtS`, Unix seconds, may be deleted. */
    find(claim: IdempotencyClaim, sweepAtS: number): ClaimResult | undefined;
    /** Stores the result of a command for replays, if it is DONE or a final error. */
    keep(claim: IdempotencyClaim, nowS: number, kind: Kind, outcome: CommandResult): void;
    /** Replaces it by the result of a further command of the same call, on the same condition. */
    replace(claim: IdempotencyClaim, outcome: CommandResult): void;
  };
  readonly quotas: {
    /** Counts a call. Returns the new count; undefined if all calls of the month are used. */
    take(claim: QuotaClaim): number | undefined;
    counted(claim: Pick<QuotaClaim, 'callerId' | 'month'>): number;
  };
  readonly outbox: { add(event: NewEvent): void; keep(): void };
  /** Executes a command: entirely, or not at all if it is rejected or fails. It throws errors that end the batch. */
  readonly perform: (command: Command) => CommandResult | Failed | Promise<CommandResult | Failed>;
}

/** As `createRequests` makes it. */
export type Requests = ReturnType<typeof createRequests>;

/** Prepares the execution of single requests, inside the transaction of their batch. */
export function createRequests({
  handlers,
  callers,
  spendNonce,
  keys,
  quotas,
  outbox,
  perform,
}: RequestParts) {
  const changes = (kind: Kind): boolean => handlers[kind].isWriting;

  function writes({ admission, continues, effect }: StoreRequest): boolean {
    const isKeeping = admission?.nonce ?? admission?.idempotency ?? admission?.quota?.take ?? continues;
    return Boolean(isKeeping) || (effect !== undefined && changes(effect.kind));
  }

  /** Whether a request may change credentials. */
  function changesCredentials({ effect }: StoreRequest): boolean {
    return effect !== undefined && callers.has(effect.kind) && changes(effect.kind);
  }

  /** Appends a usage.threshold event if a call reaches a threshold of the quota. The event stays even if the command fails. */
  function appendUsageEvent({ callerId, month, limit }: QuotaClaim, calls: number, nowS: number): void {
    const percent = limit && usageThreshold(calls, limit);
    if (!percent) return;
    outbox.add({ type: 'usage.threshold', callerId, atMs: nowS * 1_000, month, percent });
    outbox.keep();
  }

  const countedOf = (quota: QuotaClaim | undefined) => quota && quotas.counted(quota);
  const notAdmitted = (why: AdmissionFault, quota: QuotaClaim | undefined): Reply => ({
    outcome: { kind: 'NOT_ADMITTED', why },
    calls: countedOf(quota),
  });

  /** The current state of the instruction that a call with the same key was given. */
  async function instructed(instructionId: string): Promise<CommandResult> {
    const result = await handlers.FindInstruction.run({ kind: 'FindInstruction', instructionId });
    if (result === undefined) throw new Error(`There is no instruction ${instructionId}.`);
    return { kind: 'DONE', result, isReplay: result.status === 'CONFIRMED' || result.status === 'DECLINED' };
  }

  /** Admits a request and executes its command. Throws errors that end the batch. */
  function execute({ admission, continues, effect }: StoreRequest): Reply | Promise<Reply> {
    const { nowS = 0, sweepAtS = nowS, nonce, idempotency, quota } = admission ?? {};
    if (nonce !== undefined && !spendNonce(nonce, nowS, sweepAtS)) return notAdmitted('NONCE_REUSED', quota);
    const known = idempotency && keys.find(idempotency, sweepAtS);
    if (known?.kind === 'REUSED') return notAdmitted('IDEMPOTENCY_KEY_REUSED', quota);
    // A repetition does not count against the quota, whether its result is known yet or not.
    if (known !== undefined) {
      const { claimedBy } = known;
      const replayed = (outcome: CommandResult): Reply => ({ outcome, calls: countedOf(quota), claimedBy });
      return known.kind === 'REPEATED'
        ? replayed(known.outcome)
        : instructed(known.instructionId).then(replayed);
    }
    const calls = quota?.take ? quotas.take(quota) : countedOf(quota);
    if (quota?.take) {
      if (calls === undefined) return notAdmitted('QUOTA_EXCEEDED', quota);
      appendUsageEvent(quota, calls, nowS);
    }
    if (effect === undefined) return { outcome: { kind: 'DONE', result: undefined, isReplay: false }, calls };
    const finish = (outcome: CommandResult | Failed): Reply => {
      if ('failure' in outcome) return outcome;
      if (idempotency) keys.keep(idempotency, nowS, effect.kind, outcome);
      if (continues) keys.replace(continues, outcome);
      return { outcome, calls };
    };
    const performed = perform(effect);
    return performed instanceof Promise ? performed.then(finish) : finish(performed);
  }

  return { writes, changesCredentials, execute };
}
