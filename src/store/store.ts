import type { Environment } from '../domain/caller.ts';
import { type ApiErrorData, errorOf } from '../domain/violation.ts';
import type { DistributionData } from '../lib/distribution.ts';
import type { ActCommands } from './audit-commands.ts';
import type { CallerCommands, StoredKey, StoredToken } from './caller-commands.ts';
import type { EscrowCommands } from './escrow-commands.ts';
import type { EventCommands } from './event-commands.ts';
import type { EvidenceCommands } from './evidence-commands.ts';
import type { FilingCommands } from './filing-commands.ts';
import type { LogCommands } from './log-commands.ts';
import type { MetricCommands } from './metric-commands.ts';
import type { PartyCommands } from './party-commands.ts';
import type { ReconciliationCommands } from './reconciliation-commands.ts';
import type { RestorationCommands } from './restoration-commands.ts';
import type { RetentionCommands } from './retention-commands.ts';
import type { WebhookCommands } from './webhook-commands.ts';

/**
 * The durable store.
 *
 * Ordering: units that are submitted without waiting for each other take effect one at a time, in some order. A unit sees
 * every unit that resolved before it was submitted.
 *
 * Fairness: where more units wait than can be carried out at once, their shares take turns, by what the units cost. A unit
 * waits for a bounded amount of work of other shares, however many units these have waiting.
 *
 * Durability: a unit resolves when all of it survives kill -9 and loss of power; what it read is then durable as well.
 *
 * After UNAVAILABLE a unit may or may not have been stored. Its Idempotency-Key tells: submitted again under the same
 * key it takes effect once. Where the engine knows that nothing was stored the message says so.
 *
 * Concurrency: any number of processes may open the same store, and each sees what the others made durable; one at a
 * time takes calls.
 */
export interface Store {
  /**
   * Carries out a unit: all of it in one transaction, or nothing. Rejects with ApiError UNAVAILABLE when the store cannot
   * take it or keep it (disk full, held by another process, overloaded, closed). Any other error is an effect that failed in
   * a way that is not foreseen: it leaves nothing, and the admission may have been kept.
   */
  execute<K extends Kind>(unit: StoreRequest<K>): Promise<Executed<K>>;
  /** The key of that name, from memory: with all changes of this process, and those of others within a second. */
  findKey(apiKey: string): StoredKey | undefined;
  /** The same for a service token that is not revoked, by its SHA-256; it may have expired. */
  findToken(sha256: Uint8Array): StoredToken | undefined;
  /**
   * Resolves when `findKey` and `findToken` give, and listeners were told of, all that other processes made durable before the call.
   */
  refresh(): Promise<void>;
  /**
   * A key of 32 bytes for a purpose of that name: known to this deployment alone, the same in each of its processes and
   * after each restart, and it tells nothing of those for other purposes.
   */
  keyFor(purpose: string): Uint8Array;
  /**
   * How long it took to check all that is stored, in milliseconds, since whoever served before did not close it; undefined if
   * it did.
   */
  readonly checkedMs: number | undefined;
  /** What this process upgraded as it opened the store; undefined if the schema was that of this version. */
  readonly upgrade: SchemaUpgrade | undefined;
  /** Makes this process the one that takes calls, until it closes the store. Throws if another one is. */
  beginServing(): Promise<void>;
  /**
   * What keeps the store from working that was opened, in words for the operator, as of a second ago at most; undefined
   * if nothing does. As long as something does all units are refused with UNAVAILABLE. An engine on files says so when they
   * are not in their place any more.
   */
  findFault(): string | undefined;
  /** The storage errors that the store has met since it was opened. */
  storageErrors(): StorageErrors;
  /** Calls back when there are more of them, before the unit that met one is rejected. Returns what ends it. */
  onStorageError(listener: () => void): () => void;
  /**
   * Has a listener told whose events have become durable: those of this process behind each transaction that wrote some, those of
   * others within a second; undefined for callers that are not known. Gives what ends it.
   */
  onEvents(listener: EventListener): () => void;
  /** CallTransaction that were taken and have not resolved yet. */
  unitsInFlight(): number;
  /** What an operator watches of the store itself. Rejects with ApiError UNAVAILABLE when it is gone. */
  metrics(): Promise<StoreMetrics>;
  /** Resolves with why, if the store is lost to this process for good; never otherwise. All units are refused then. */
  readonly lost: Promise<Error>;
  /** Carries out what was submitted and gives up the resources; further units are refused with UNAVAILABLE. */
  close(): Promise<void>;
}

/** The schemas before and after an upgrade. */
export interface SchemaUpgrade {
  readonly fromSchema: number;
  readonly toSchema: number;
}

/** Is told whose events are there to be read: ids of callers; undefined where some may be of anybody. */
export type EventListener = (callerIds: readonly number[] | undefined) => void;

/** Errors of the disk and of what is stored on it. The texts are for the operator. */
export interface StorageErrors {
  /**
   * How often the store was refused a write or a read: the disk is full, read-only or fails. Not counted: another process
   * holds the store.
   */
  readonly refusals: number;
  readonly lastRejection: string | undefined;
  /** The first damage that was found in the store itself: what can be read is returned, and the rest never is. */
  readonly damage: string | undefined;
}

/** What a store does and holds, since it was opened. */
export interface StoreMetrics {
  /** CallTransaction that were taken and have not resolved yet. */
  readonly unitsInFlight: number;
  /** How many units shared each transaction that wrote. */
  readonly transactionUnits: DistributionData;
  /** How long each of these took from its beginning to its end, in seconds. */
  readonly transactionSeconds: DistributionData;
  /** How long it took to get them on disk once all was written, in seconds: a part of the time before. */
  readonly commitSeconds: DistributionData;
  /** Spent nonces that are remembered. */
  readonly nonces: number;
  readonly incidents: IncidentCounts;
  /** Undefined for an engine that keeps no files of its own. */
  readonly files: StoreFiles | undefined;
}

/** What should not happen, and how often it did. */
export interface IncidentCounts {
  /** Filings that were refused since the clock may be wrong. */
  readonly clockRejections: number;
  /**
   * Reads of records that are not what was recorded, by their evidence hash or by the evidence log, and of parts of the store
   * that are damaged; none was returned.
   */
  readonly damagedRecords: number;
}

/** Bytes of the files of a store; undefined where they cannot be read. */
export interface StoreFiles {
  readonly databaseBytes: number | undefined;
  /** What is written ahead of the database. */
  readonly logBytes: number | undefined;
  /** What this user can still write on their disk. */
  readonly freeBytes: number | undefined;
}

/** All commands, grouped by those who use them. An engine has a handler for each. */
export interface Commands
  extends FilingCommands,
    EvidenceCommands,
    LogCommands,
    EscrowCommands,
    ReconciliationCommands,
    CallerCommands,
    PartyCommands,
    ActCommands,
    MetricCommands,
    RestorationCommands,
    RetentionCommands,
    EventCommands,
    WebhookCommands {
  /** Takes no effect and is refused: for a call that is admitted before what is wrong with it is told. */
  Refuse: { readonly takes: { readonly apiError: ApiErrorData }; readonly gives: never };
  /** Changes nothing, yet goes to disk like what does: done, it proves that the store takes writes. */
  RewriteNothing: { readonly takes: object; readonly gives: undefined };
}

/** Names of commands. */
export type Kind = keyof Commands;

/** What is to be done, as plain data that can cross a thread or a wire. */
export type Command<K extends Kind = Kind> = {
  [Name in K]: { readonly kind: Name } & Commands[Name]['takes'];
}[K];

/** What a command gives. */
export type Result<K extends Kind = Kind> = Commands[K]['gives'];

/** Whose shares of the store are not those of callers, whose ids are positive. */
export const shares = {
  /** What the service does by itself: recovery, the evidence log, readiness. */
  service: 0,
  /** Sending to webhooks. */
  webhooks: -1,
  /** Reads that need no signature. */
  publicReads: -2,
} as const;

/** What takes effect together: letting a call in, and what it asks for. Either may be missing. */
export interface StoreRequest<K extends Kind = Kind> {
  /** Whose share of the store it uses: the id of a caller, or one of `shares`; that of the service if left out. */
  readonly share?: number | undefined;
  readonly admission?: Admission | undefined;
  /**
   * The idempotency key of a call that was admitted by an earlier unit. What becomes of this effect replaces what is kept for
   * repetitions, under the rules of IdempotencyClaim; another error leaves it as it is.
   */
  readonly continues?: IdempotencyClaim | undefined;
  readonly effect?: Command<K> | undefined;
}

/**
 * Lets a call in, in this order: its nonce is spent, its idempotency key is looked up, the quota is taken. The first stays
 * whatever follows; the quota stays unless the answer was given before.
 */
export interface Admission {
  /** Unix seconds. */
  readonly nowS: number;
  /** Unix seconds as of which forgotten nonces and idempotency keys may be swept away; `nowS` if left out. */
  readonly sweepAtS?: number | undefined;
  readonly nonce?: NonceClaim | undefined;
  readonly idempotency?: IdempotencyClaim | undefined;
  readonly quota?: QuotaClaim | undefined;
}

/** How long a spent nonce is remembered: the width of the accepted clock difference and a minute more. */
export const nonceRetentionS = 660;

/**
 * A nonce that a key wants to spend: for the first time, or again as long as `nowS` is `nonceRetentionS` or more after or
 * before that of the first.
 */
export interface NonceClaim {
  /** StoredKey.id. */
  readonly keyId: number;
  readonly nonce: string;
}

/** How long an idempotency key is remembered, in seconds. */
export const idempotencyRetentionS = 604_800;

/**
 * A key that a call wants to be known by. It keeps what became of the effect: DONE, and REFUSED for a final reason
 * (`isFinal`); another error leaves it free. Where the effect gave an Instruction, a repetition is given that instruction
 * as it is by then, and `isReplay` once it has ended.
 */
export interface IdempotencyClaim {
  readonly callerId: number;
  readonly key: string;
  /** Digest of the request that the key names. */
  readonly fingerprint: Uint8Array;
  /** Id of the call, which repetitions are told as Executed.claimedBy. */
  readonly requestId: string;
}

/** A call to be counted, if the month has one left. */
export interface QuotaClaim {
  readonly callerId: number;
  /** YYYY-MM. */
  readonly month: string;
  /** Calls a month; undefined for unlimited. */
  readonly limit: number | undefined;
  /** Whether to count the call, or only to tell how many were. */
  readonly take: boolean;
}

/** What became of a unit. */
export interface Executed<K extends Kind = Kind> {
  readonly outcome: CommandResult<K>;
  /** Calls counted in the month of the quota claim, this one included if it was; undefined without a claim. */
  readonly calls?: number | undefined;
  /** Id of the earlier call that claimed the idempotency key for the same request, if one did. */
  readonly claimedBy?: string | undefined;
}

/**
 * - DONE: the effect, if there was one, took place.
 * - REFUSED: it did not, and why.
 * - NOT_ADMITTED: the call was not let in; of the admission only the nonce is spent, if it was not before.
 *
 * `isReplay` tells that an earlier call under the same idempotency key was given this, and that nothing was done.
 */
export type CommandResult<K extends Kind = Kind> =
  | { readonly kind: 'DONE'; readonly result: Result<K>; readonly isReplay: boolean }
  | { readonly kind: 'REFUSED'; readonly apiError: ApiErrorData; readonly isReplay: boolean }
  | { readonly kind: 'NOT_ADMITTED'; readonly why: AdmissionFault };

/** Why a call is not let in. */
export type AdmissionFault = 'NONCE_REUSED' | 'IDEMPOTENCY_KEY_REUSED' | 'QUOTA_EXCEEDED';

/** Carries out one command. Throws the ApiError that it meets. */
export type Execute = <K extends Kind>(command: Command<K>) => Promise<Result<K>>;

/** Reads size and roots of the tree of the evidence log. */
export type ReadTree = <K extends 'GetTree' | 'GetRoot'>(command: Command<K>) => Promise<Result<K>>;

/** Carries out commands one by one, each as a unit of its own, which uses the given share. */
export const executorOf =
  (store: Pick<Store, 'execute'>, share?: number): Execute =>
  (command) =>
    perform(store, command, share);

/** Carries out one command by itself. Throws the ApiError that it meets. */
export async function perform<K extends Kind>(
  store: Pick<Store, 'execute'>,
  command: Command<K>,
  share?: number,
): Promise<Result<K>> {
  const { outcome } = await store.execute<K>({ share, effect: command });
  if (outcome.kind === 'DONE') return outcome.result;
  if (outcome.kind === 'REFUSED') throw errorOf(outcome.apiError);
  throw new Error(`A command without admission was not admitted: ${outcome.why}.`);
}

/** What a store is opened with. */
export interface StoreOptions {
  readonly dataDir: string;
  readonly environment: Environment;
  /** ISO 4217 code of all amounts. */
  readonly currency: string;
  /** Whether the store must be there, must not be there and is made, or is made if it is not there. */
  readonly opening: 'EXISTING' | 'NEW' | 'EITHER';
  /**
   * Whether this process is to take calls: where it can be known, it is refused before anything is opened if another one
   * does.
   */
  readonly serving?: boolean;
  /** Whether it is known that the process that took calls before did not end well: what is stored is checked then. */
  readonly wasCutOff?: boolean;
  /**
   * Names of files of the folder that are only ever made beside a complete store: with one of them there and the store
   * gone, nothing is made.
   */
  readonly madeLater?: readonly string[];
}
