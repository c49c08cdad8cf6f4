import { deserialize, serialize } from 'node:v8';
import type { InferSelectModel } from 'drizzle-orm';
import { type NewEvent, usageThreshold } from '../../domain/event.ts';
import { isFinal } from '../../domain/reason.ts';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import type { Instruction } from '../escrow-commands.ts';
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
import type { idempotencyKey } from './schema.ts';

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
    const { nowS = 0, sweepAtS = nowS, aheadS = 0, nonce, idempotency, quota } = admission ?? {};
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
      appendUsageEvent(quota, calls, nowS + aheadS);
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

  /** Executes requests until their replies are long. */
  async function executeSome(batch: readonly StoreRequest[]): Promise<readonly Reply[]> {
    const replies: Reply[] = [];
    let characters = 0;
    for (const request of batch) {
      const executing = execute(request);
      // Most replies are there at once, and awaiting each would take as long as a tenth of a filing.
      const reply = executing instanceof Promise ? await executing : executing;
      replies.push(reply);
      characters += charactersIn(reply);
      if (characters > repliedCharactersMax) break;
    }
    return replies;
  }

  return { writes, changesCredentials, executeSome };
}

/** Commands that return an instruction, whose current state a replay returns. */
const instructing: ReadonlySet<Kind> = new Set(['OpenEscrow', 'PrepareResolution']);

/** A row of a claimed key. */
export type ClaimedKey = InferSelectModel<typeof idempotencyKey>;

/**
 * The state of a claimed key: it belongs to another request, or this is a replay with a stored result or with an instruction, whose
 * current state is the result.
 */
type ClaimResult =
  | { readonly kind: 'REUSED' }
  | {
      readonly kind: 'INSTRUCTED';
      readonly instructionId: string;
      readonly claimedBy: string | undefined;
    }
  | {
      readonly kind: 'REPEATED';
      readonly outcome: CommandResult;
      readonly claimedBy: string | undefined;
    };

/** What a claim finds under its key. */
export function resultOfClaim(
  { fingerprint: claimed, requestId, instructionId, outcome }: ClaimedKey,
  { fingerprint }: IdempotencyClaim,
): ClaimResult {
  if (!claimed.equals(fingerprint)) return { kind: 'REUSED' };
  const claimedBy = requestId ?? undefined;
  if (instructionId !== null) return { kind: 'INSTRUCTED', instructionId, claimedBy };
  if (outcome === null) return { kind: 'REUSED' };
  return { kind: 'REPEATED', outcome: { ...deserialize(outcome), isReplay: true }, claimedBy };
}

/** The row that keeps the result of a command for replays; undefined unless it is DONE or a final error. */
export function claimedKey(
  { callerId, key, fingerprint, requestId }: IdempotencyClaim,
  nowS: number,
  kind: Kind,
  outcome: CommandResult,
): ClaimedKey | undefined {
  if (!isKept(outcome)) return undefined;
  const isInstruction = outcome.kind === 'DONE' && instructing.has(kind);
  return {
    ...{ callerId, key, requestId, claimedAtS: nowS, fingerprint: Buffer.from(fingerprint) },
    instructionId: isInstruction ? (outcome.result as Instruction).instructionId : null,
    outcome: isInstruction ? null : serialize(outcome),
  };
}

/** The result that replaces that of an earlier command of the same call, serialised; undefined on the same condition. */
export const replacedOutcome = (outcome: CommandResult): Buffer | undefined =>
  isKept(outcome) ? serialize(outcome) : undefined;

function isKept(outcome: CommandResult): boolean {
  return outcome.kind === 'DONE' || (outcome.kind === 'REJECTED' && isFinal(outcome.apiError.reason));
}

/**
 * Executes each half of a batch by itself, so that a request that fails does not fail the others. If the replies get long, it
 * returns those of the first requests only.
 */
export async function inHalves(
  batch: readonly StoreRequest[],
  execute: (some: readonly StoreRequest[]) => Promise<readonly Reply[]>,
): Promise<readonly Reply[]> {
  const first = batch.slice(0, Math.ceil(batch.length / 2));
  const replies = await execute(first);
  if (replies.length < first.length) return replies;
  return [...replies, ...(await execute(batch.slice(first.length)))];
}

/** The number of characters and bytes in a value, as a measure of its size. */
export function charactersIn(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  if (Array.isArray(value)) for (const part of value) sum += charactersIn(part);
  // Faster than Object.values. What commands return has no inherited members.
  else for (const name in value) sum += charactersIn((value as Record<string, unknown>)[name]);
  return sum;
}

/** Characters in the replies of a batch after which it ends, so that the receiving thread can do other work between. */
const repliedCharactersMax = 500_000;

/** Bounds of the distribution of requests in a transaction. */
const requestBounds: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000];

/** Measures transactions that write. */
export function measureTransactions() {
  const transactionRequests = createDistribution(requestBounds);
  const transactionSeconds = createDistribution(durationBoundsS);
  const commitSeconds = createDistribution(durationBoundsS);
  return {
    commitSeconds,
    /** Runs a transaction, and measures it if it writes. */
    run: async (isWriting: boolean, transact: () => Promise<readonly Reply[]>): Promise<readonly Reply[]> => {
      if (!isWriting) return transact();
      const replies = await transactionSeconds.timed(transact);
      transactionRequests.add(replies.length);
      return replies;
    },
    metrics: () => ({
      transactionRequests: transactionRequests.data(),
      transactionSeconds: transactionSeconds.data(),
      commitSeconds: commitSeconds.data(),
    }),
  };
}
