import type { Environment } from '../domain/caller.ts';
import { type ApiErrorData, errorOf } from '../domain/violation.ts';
import type { DistributionData } from '../lib/distribution.ts';
import type { CallerCommands, StoredKey, StoredToken } from './caller-commands.ts';
import type { EscrowCommands } from './escrow-commands.ts';
import type { EventCommands } from './event-commands.ts';
import type { EvidenceCommands } from './evidence-commands.ts';
import type { FilingCommands } from './filing-commands.ts';
import type { InstanceCommands } from './instance-commands.ts';
import type { LogCommands } from './log-commands.ts';
import type { MetricCommands } from './metric-commands.ts';
import type { AuditCommands, RestorationCommands, RetentionCommands } from './operator-commands.ts';
import type { PartyCommands } from './party-commands.ts';
import type { ReconciliationCommands } from './reconciliation-commands.ts';
import type { RegistrationCommands } from './registration-commands.ts';
import type { WebhookCommands } from './webhook-commands.ts';

/**
 * The durable store. Every request is one transaction.
 *
 * Durability: `execute` resolves once the whole transaction is on disk. It then survives kill -9 and power loss, and so
 * does everything that it read.
 *
 * Isolation: requests are serialized. A request sees every request that resolved before it was submitted. Requests that
 * are submitted together take effect one at a time, in any order.
 *
 * Fairness: each share of waiting requests gets the same part of the engine's time, by estimated cost. How long a request
 * waits for other shares does not depend on how many requests they have queued.
 *
 * After UNAVAILABLE a request may or may not have taken effect. Submitted again with the same Idempotency-Key, it takes
 * effect once. The message says so if the engine knows that nothing was stored.
 *
 * An engine may serve several processes. On SQLite, one process at a time opens a store.
 */
export interface Store {
  /**
   * Runs a request: all of it, or nothing. Rejects with ApiError UNAVAILABLE if the store cannot take or keep it: disk full,
   * overloaded, closed. Any other rejection is an internal error: the effect left nothing, but the admission may have been kept.
   */
  execute<K extends Kind>(request: StoreRequest<K>): Promise<Executed<K>>;
  /** Finds a key in memory. A change by this process is visible when its request resolves. */
  findKey(apiKey: string): StoredKey | undefined;
  /** Finds a token that is not revoked, by its SHA-256, likewise. The token may have expired. */
  findToken(sha256: Uint8Array): StoredToken | undefined;
  /**
   * Derives a 32-byte key for a purpose. It is the same in every process of the deployment and after every restart, and is
   * independent of the keys for other purposes.
   */
  keyFor(purpose: string): Uint8Array;
  /** How long opening spent on checking all stored data, in milliseconds; undefined if the last shutdown was clean. */
  readonly checkedMs: number | undefined;
  /** The upgrade that opening made; undefined if the schema was current. */
  readonly upgrade: SchemaUpgrade | undefined;
  /**
   * Why the store cannot be used at present, for the operator: its files were moved or deleted, for example. At most a
   * second old; undefined if it can be used. While there is a fault, every request is rejected with UNAVAILABLE.
   */
  findFault(): string | undefined;
  /** The storage errors since the store was opened. */
  storageErrors(): StorageErrors;
  /** Calls back on a new storage error, before the request that met it is rejected. Returns the function that unsubscribes. */
  onStorageError(listener: () => void): () => void;
  /** Calls back after each transaction that wrote events. Returns the function that unsubscribes. */
  onEvents(listener: EventListener): () => void;
  /** The instances that serve the database, of which this is one; undefined on SQLite, which one process uses at a time. */
  readonly instances?: Instances | undefined;
  /** The number of requests that have been submitted and not resolved. */
  requestsInFlight(): number;
  /** The metrics of the store itself. Rejects with ApiError UNAVAILABLE when the store is gone. */
  metrics(): Promise<StoreMetrics>;
  /** Resolves with the reason if this process loses the store for good, and never otherwise. Requests are then rejected. */
  readonly lost: Promise<Error>;
  /** Runs what was submitted, then releases all resources. Requests after that are rejected with UNAVAILABLE. */
  close(): Promise<void>;
}

/** The instances that serve a database together. */
export interface Instances {
  /**
   * Whether this one leads: it does the background work of all, which is to sign the log, send webhooks and recover orders. Only an
   * instance that has joined can lead. Another one may take over at any moment, also while work of this one is under way.
   */
  isLeading(): boolean;
  /** The number of others that serve, at most a second old. */
  others(): number;
}

/** Whether this process does the background work of its deployment. Always true on SQLite. */
export const leads = ({ instances }: Pick<Store, 'instances'>): boolean => instances?.isLeading() ?? true;

/** The schema versions before and after an upgrade. */
export interface SchemaUpgrade {
  readonly fromSchema: number;
  readonly toSchema: number;
}

/** Receives the ids of the callers that have new events. */
export type EventListener = (callerIds: readonly number[]) => void;

/** Errors of the disk and damage of stored data. The texts are for the operator. */
export interface StorageErrors {
  /** How many reads and writes failed because the disk is full, read-only or broken. */
  readonly failures: number;
  readonly lastFailure: string | undefined;
  /** The first damage that was found in stored data. Damaged data is never returned. */
  readonly damage: string | undefined;
}

/** Metrics of a store since it was opened. */
export interface StoreMetrics {
  readonly requestsInFlight: number;
  /** Requests per transaction that wrote. */
  readonly transactionRequests: DistributionData;
  /** Seconds per transaction that wrote, to the end of COMMIT. The wait for other instances is not part of it. */
  readonly transactionSeconds: DistributionData;
  /** Seconds per COMMIT of these, which is part of `transactionSeconds`. */
  readonly commitSeconds: DistributionData;
  /** Remembered nonces. */
  readonly nonces: number;
  readonly incidents: IncidentCounts;
  /** Undefined while none of the sizes is known. */
  readonly files: StoreFiles | undefined;
  /** Undefined for an engine without a server. */
  readonly server?: ServerMetrics | undefined;
}

/** Metrics of the connection to a database server, and of the database. */
export interface ServerMetrics {
  readonly isConnected: boolean;
  /** Connections that replaced a lost one. */
  readonly reconnects: number;
  /** Transactions that were repeated because another one was in the way, by SQLSTATE. */
  readonly repeated: Readonly<Record<string, number>>;
  /** Commits whose reply was lost, so that the store asked the server whether they took effect. */
  readonly commitsInDoubt: number;
  /** Age of the oldest snapshot in the database, in seconds; undefined if it is not known. */
  readonly snapshotS: number | undefined;
  /** Instances that serve the database, this one included. */
  readonly instances: number;
  /** Whether this one leads. */
  readonly isLeading: boolean;
}

/** Counts of events that call for an operator. */
export interface IncidentCounts {
  /** Filings that were rejected because the clock may be wrong. */
  readonly clockRejections: number;
  /** Reads that failed because the record does not match its evidence hash or the evidence log, or the file is damaged. */
  readonly damagedRecords: number;
}

/** Sizes in bytes; undefined where a size cannot be read. */
export interface StoreFiles {
  /** The database: its file, or all its relations on a server. */
  readonly databaseBytes: number | undefined;
  /** The write-ahead log. */
  readonly logBytes: number | undefined;
  /** Free space on their disk for this user. */
  readonly freeBytes: number | undefined;
}

/** All commands. An engine has a handler for each. */
export interface Commands
  extends FilingCommands,
    EvidenceCommands,
    LogCommands,
    EscrowCommands,
    ReconciliationCommands,
    CallerCommands,
    PartyCommands,
    AuditCommands,
    MetricCommands,
    RestorationCommands,
    RetentionCommands,
    EventCommands,
    InstanceCommands,
    RegistrationCommands,
    WebhookCommands {
  /** Fails with the given error: for an invalid call whose nonce and quota are to be used up all the same. */
  Reject(command: { readonly apiError: ApiErrorData }): never;
  /** Writes to disk and changes nothing: proves that the store can write. */
  RewriteNothing(): undefined;
}

/** Names of commands. */
export type Kind = keyof Commands;

/** What a command takes. */
export type Taken<K extends Kind> = Commands[K] extends (command: infer Takes) => unknown ? Takes : never;

/** A command as plain data, which can be sent to another thread. */
export type Command<K extends Kind = Kind> = {
  [Name in K]: { readonly kind: Name } & Taken<Name>;
}[K];

/** The result of a command. */
export type Result<K extends Kind = Kind> = ReturnType<Commands[K]>;

/** Shares of the store besides those of callers, whose ids are positive. */
export const shares = {
  /** Background work of the service: recovery, the evidence log, readiness. */
  service: 0,
  /** Webhook delivery. */
  webhooks: -1,
  /** Unsigned public reads. */
  publicReads: -2,
} as const;

/** The admission of a call and its effect, in one transaction. Either may be missing. */
export interface StoreRequest<K extends Kind = Kind> {
  /** The share that pays for it: a caller id or one of `shares`; `shares.service` by default. */
  readonly share?: number | undefined;
  readonly admission?: Admission | undefined;
  /**
   * The idempotency key of a call that an earlier request admitted. The result of this effect replaces the stored one, by the
   * rules of IdempotencyClaim. An error that is not final leaves the stored one.
   */
  readonly continues?: IdempotencyClaim | undefined;
  readonly effect?: Command<K> | undefined;
}

/**
 * Admits a call, in this order: consumes its nonce, looks up its idempotency key, takes its quota. The nonce stays consumed
 * whatever follows. The quota stays taken unless the call is a replay.
 */
export interface Admission {
  /** Unix seconds. */
  readonly nowS: number;
  /** Unix seconds by which expired nonces and idempotency keys are deleted; `nowS` by default. */
  readonly sweepAtS?: number | undefined;
  /** By how many seconds the business clock, which events have, is ahead of these; 0 by default. */
  readonly aheadS?: number | undefined;
  readonly nonce?: NonceClaim | undefined;
  readonly idempotency?: IdempotencyClaim | undefined;
  readonly quota?: QuotaClaim | undefined;
}

/** How long a nonce is remembered, in seconds: the full width of the accepted clock difference and a minute more. */
export const nonceRetentionS = 660;

/** The nonce of a signed call. It can be used again only if `nowS` is `nonceRetentionS` or more before or after its first use. */
export interface NonceClaim {
  /** StoredKey.id. */
  readonly keyId: number;
  readonly nonce: string;
}

/** How long an idempotency key is remembered, in seconds. */
export const idempotencyRetentionS = 604_800;

/**
 * The Idempotency-Key of a call. The store keeps the result of the effect if it is DONE, or REJECTED for a final reason
 * (`isFinal`). Any other error leaves the key free. If the result is an Instruction, a replay returns its current state, and
 * `isReplay` is set once it has ended.
 */
export interface IdempotencyClaim {
  readonly callerId: number;
  readonly key: string;
  /** Digest of the request. */
  readonly fingerprint: Uint8Array;
  /** The request id of the call. Replays get it as Executed.claimedBy. */
  readonly requestId: string;
}

/** A call to count against the monthly quota. */
export interface QuotaClaim {
  readonly callerId: number;
  /** YYYY-MM. */
  readonly month: string;
  /** Calls a month; undefined for unlimited. */
  readonly limit: number | undefined;
  /** Whether to count the call; false only reads the count. */
  readonly take: boolean;
}

/** The result of a request. */
export interface Executed<K extends Kind = Kind> {
  readonly outcome: CommandResult<K>;
  /** Calls counted in the month of the quota claim, including this one if it counts; undefined without a claim. */
  readonly calls?: number | undefined;
  /** The request id of the earlier call with the same idempotency key; undefined if there was none. */
  readonly claimedBy?: string | undefined;
}

/**
 * - DONE: the effect, if there is one, took place.
 * - REJECTED: the effect failed with `apiError` and changed nothing.
 * - NOT_ADMITTED: the call was not admitted. Its nonce is consumed, its quota is not taken.
 *
 * With `isReplay` this is the result of an earlier call with the same idempotency key, and nothing was done.
 */
export type CommandResult<K extends Kind = Kind> =
  | { readonly kind: 'DONE'; readonly result: Result<K>; readonly isReplay: boolean }
  | { readonly kind: 'REJECTED'; readonly apiError: ApiErrorData; readonly isReplay: boolean }
  | { readonly kind: 'NOT_ADMITTED'; readonly why: AdmissionFault };

/** Why a call was not admitted. */
export type AdmissionFault = 'NONCE_REUSED' | 'IDEMPOTENCY_KEY_REUSED' | 'QUOTA_EXCEEDED';

/** Runs one command. Throws the ApiError that it fails with. */
export type Execute = <K extends Kind>(command: Command<K>) => Promise<Result<K>>;

/** Reads the size and roots of the evidence log's tree. */
export type ReadTree = <K extends 'GetTree' | 'GetRoot'>(command: Command<K>) => Promise<Result<K>>;

/** Returns a function that runs each command as a request of its own, in the given share. */
export const executorOf =
  (store: Pick<Store, 'execute'>, share?: number): Execute =>
  (command) =>
    perform(store, command, share);

/** Runs one command as a request of its own. Throws the ApiError that it fails with. */
export async function perform<K extends Kind>(
  store: Pick<Store, 'execute'>,
  command: Command<K>,
  share?: number,
): Promise<Result<K>> {
  const { outcome } = await store.execute<K>({ share, effect: command });
  if (outcome.kind === 'DONE') return outcome.result;
  if (outcome.kind === 'REJECTED') throw errorOf(outcome.apiError);
  throw new Error(`A command without admission was not admitted: ${outcome.why}.`);
}

/** Options to open a store with. */
export interface StoreOptions {
  readonly dataDir: string;
  readonly environment: Environment;
  /** ISO 4217 code of all amounts. */
  readonly currency: string;
  /** EXISTING: it must exist. NEW: it must not exist and is created. EITHER: it is created if it does not exist. */
  readonly opening: 'EXISTING' | 'NEW' | 'EITHER';
  /** How long opening waits for a process that uses the store, in milliseconds. Its thread does nothing else meanwhile. */
  readonly lockTimeoutMs?: number;
  /** Name of a file that a process leaves if it crashes. If it is there, opening checks all stored data. */
  readonly openMark?: string;
  /**
   * Names of files that are only created next to a complete store. If one exists without the store, the store was lost, and
   * opening does not create a new one.
   */
  readonly madeLater?: readonly string[];
}

/** Where the database is, and the files that a connection needs. They are read at each connection. */
export interface PostgresPlace {
  /** As `parseUrl` takes it. */
  readonly url: string;
  readonly passwordFile?: string | undefined;
  /** The authorities that may sign the certificate of the server, in place of those that Node.js knows. */
  readonly caFile?: string | undefined;
  /** The certificate of the client; both or none. */
  readonly certificateFile?: string | undefined;
  readonly keyFile?: string | undefined;
}
