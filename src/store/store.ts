import type { Environment, Tier } from '../domain/caller.ts';
import type { Escrow, EscrowMove, EscrowTerms } from '../domain/escrow.ts';
import type { Artwork, Filing } from '../domain/filing.ts';
import type { Provenance } from '../domain/provenance.ts';

/**
 * The durable store. Every verb is one whole transaction.
 *
 * Ordering: verbs take effect in the order in which they are called, each entirely or not at all, and each
 * sees all effects before it. A verb's promise resolves when it has taken effect in that order.
 *
 * Grouping: the effects of verbs that are called one after the other, with nothing but each other waited for,
 * become durable together or not at all.
 *
 * Durability: effects are on disk only once `durable()` has resolved, which is to be called when the verb's promise
 * resolved and before anything but the store is waited for. Until then a crash may undo them, always the latest first. So nothing that a verb did or
 * read may leave the process (an answer to a caller, an instruction to the payment institution) before
 * `durable()`. If `durable()` rejects, none of the effects since the durable point before it remain.
 *
 * Concurrency: any number of processes may open the same store, and each sees what the others made durable; one
 * at a time takes calls, and that one alone uses `admission` and `idempotency`.
 *
 * Throws: Refusal with the reason that a verb names; Refusal UNAVAILABLE when the store cannot take or keep
 * the effect (disk full, overloaded, closed), and then it has none.
 */
export interface Store {
  readonly admission: AdmissionStore;
  readonly callers: CallerStore;
  readonly filings: FilingStore;
  readonly escrows: EscrowStore;
  readonly idempotency: IdempotencyStore;
  /** Makes this process the one that takes calls, until it closes the store. Throws if another one is. */
  beginServing(): Promise<void>;
  /** Resolves when all effects so far survive kill -9 and loss of power. */
  durable(): Promise<void>;
  /** Makes all effects durable and gives up the resources; further verbs are refused with UNAVAILABLE. */
  close(): Promise<void>;
}

/** A page of a list, in the order that its verb states. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; undefined on the last. */
  readonly next: number | undefined;
}

/** Which page of a list. */
export interface PageQuery {
  /** `next` of the page before; undefined for the first. */
  readonly from: number | undefined;
  /** How many items at most, at least 1. */
  readonly size: number;
}

/** Who does something. */
export interface CallerRef {
  readonly callerId: number;
  /** Its name. */
  readonly caller: string;
}

/** What admission asks of the store on every call. */
export interface AdmissionStore {
  findKey(apiKey: string): Promise<StoredKey | undefined>;
  /** Finds a service token that is not revoked. */
  findToken(sha256: Uint8Array): Promise<StoredToken | undefined>;
  /**
   * Spends a nonce of a key: true for the first claim, false for each further one within
   * `nonceRetentionS` of it.
   */
  claimNonce(claim: NonceClaim): Promise<boolean>;
  /** Counts a call unless the quota is used up; the calls counted so far, or undefined if it was not counted. */
  countCall(callerId: number, month: string, quota: number | undefined): Promise<number | undefined>;
  /** Takes one counted call back. */
  giveBackCall(callerId: number, month: string): Promise<void>;
  /** Calls counted in a month, YYYY-MM. */
  callsIn(callerId: number, month: string): Promise<number>;
}

/** How long a spent nonce is remembered: the width of the accepted clock difference and a minute more. */
export const nonceRetentionS = 660;

/** A nonce that a key wants to spend. */
export interface NonceClaim {
  /** StoredKey.id. */
  readonly keyId: number;
  readonly nonce: string;
  /** Unix seconds. */
  readonly nowS: number;
}

/** Whether requests signed with a key are let in. */
export type KeyStatus = 'ACTIVE' | 'SUSPENDED' | 'REVOKED';

/** An API key and the platform that it identifies. */
export interface StoredKey extends CallerRef {
  readonly id: number;
  /** Public handle. */
  readonly keyId: string;
  readonly apiKey: string;
  readonly sealedSecret: Uint8Array;
  readonly status: KeyStatus;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** Unix seconds from which the key counts as revoked; null for never. */
  readonly expiresAtS: number | null;
  readonly tier: Tier;
  /** Calls a month; null for unlimited. */
  readonly monthlyQuota: number | null;
}

/** A service token and the internal caller that it identifies. */
export interface StoredToken extends CallerRef {
  /** Public handle. */
  readonly tokenId: string;
  readonly operator: boolean;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** Unix seconds; null while it is valid. */
  readonly revokedAtS: number | null;
}

/** A key as minted, its secret sealed. */
export type NewKey = Pick<StoredKey, 'keyId' | 'apiKey' | 'sealedSecret' | 'createdAtS'>;

/** A token as minted, known to the store by its hash alone. */
export interface NewToken extends Pick<StoredToken, 'tokenId' | 'operator' | 'createdAtS'> {
  readonly sha256: Uint8Array;
}

/** Platforms with their keys, internal callers with their tokens. */
export interface CallerStore {
  /** True while there is no caller at all. */
  isEmpty(): Promise<boolean>;
  /** Registers a platform with its first key. Throws VALIDATION_FAILED if the name is taken. */
  addPlatform(platform: NewPlatform, key: NewKey): Promise<StoredKey>;
  /** Keys by age, oldest first. */
  listKeys(page: PageQuery): Promise<Page<StoredKey>>;
  /**
   * Adds a key to the caller of an existing one, which then expires at `expiresAtS`.
   * Throws NOT_FOUND; VALIDATION_FAILED if the existing key is revoked.
   */
  rotateKey(keyId: string, key: NewKey, expiresAtS: number): Promise<StoredKey>;
  /** Changes the status of a key. Throws NOT_FOUND; VALIDATION_FAILED for a revoked key, which stays revoked. */
  setKeyStatus(keyId: string, status: KeyStatus): Promise<StoredKey>;
  /** Finds a platform by name. */
  findPlatform(name: string): Promise<Platform | undefined>;
  /** Adds a token to the internal caller of that name, registering it if need be. Throws VALIDATION_FAILED if a platform has the name. */
  addToken(name: string, token: NewToken): Promise<StoredToken>;
  /** All tokens, oldest first. */
  listTokens(page: PageQuery): Promise<Page<StoredToken>>;
  /** Throws NOT_FOUND. */
  revokeToken(tokenId: string, atS: number): Promise<StoredToken>;
}

/** A platform to register. */
export interface NewPlatform {
  readonly name: string;
  readonly tier: Tier;
  /** Calls a month; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
}

/** A platform as registered. */
export interface Platform extends CallerRef {
  /** Calls a month; null for unlimited. */
  readonly monthlyQuota: number | null;
}

/** Filings and their provenance: append-only. */
export interface FilingStore {
  /**
   * Files an artwork under the next number of the timestamp's year, without gaps, with its evidence hash and
   * its SUBMITTED record. Throws FILING_NUMBERS_EXHAUSTED.
   */
  file(artwork: Artwork, at: BusinessTime, by: CallerRef): Promise<Filing>;
  /** One filing of `owner`, or of anybody if that is undefined. */
  find(filingNo: string, owner: number | undefined): Promise<Filing | undefined>;
  /** Filings of `owner`, or all if that is undefined, newest first. */
  list(owner: number | undefined, page: PageQuery): Promise<Page<Filing>>;
  provenance(filingNo: string): Promise<Provenance | undefined>;
}

/** An instant, and what the business calendar calls it. */
export interface BusinessTime {
  readonly atMs: number;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
}

/** Escrow orders. A state changes by compare-and-swap alone. */
export interface EscrowStore {
  /**
   * Stores an UNPAID order. `owner` must have filed the artwork, unless it is undefined. Throws
   * FILING_NOT_FOUND, PERMISSION_DENIED, ESCROW_ACTIVE, ESCROW_NUMBERS_EXHAUSTED.
   */
  open(terms: EscrowTerms, at: BusinessTime, by: CallerRef, owner: number | undefined): Promise<Escrow>;
  /**
   * Makes a confirmed move; `released` appends the TRANSFER record. Throws ESCROW_NOT_FOUND;
   * ESCROW_STATE_CONFLICT if the order is not in the state that the move leads from.
   */
  move(escrowId: string, move: EscrowMove, at: BusinessTime): Promise<Escrow>;
  /** One order of `owner`, or of anybody if that is undefined. */
  find(escrowId: string, owner: number | undefined): Promise<Escrow | undefined>;
  /** Orders of `owner`, or all if that is undefined, newest first. */
  list(owner: number | undefined, page: PageQuery): Promise<Page<Escrow>>;
}

/** How long an idempotency key is remembered, in seconds. */
export const idempotencyRetentionS = 604_800;

/** The first use of an idempotency key, and the answer that its repetitions get. A call that ended with its process claims no key. */
export interface IdempotencyStore {
  /** Claims a key for a call that begins, unless it is remembered. */
  claim(claim: IdempotencyClaim): Promise<IdempotencyStanding>;
  /** Keeps the answer of the call that claimed the key. */
  keep(callerId: number, key: string, answer: KeptAnswer): Promise<void>;
  /** Forgets a key whose call left no answer to keep. */
  release(callerId: number, key: string): Promise<void>;
}

/** A key that a call wants to be known by. */
export interface IdempotencyClaim {
  readonly callerId: number;
  readonly key: string;
  /** Digest of what the key stands for. */
  readonly fingerprint: Uint8Array;
  /** Unix seconds. */
  readonly nowS: number;
}

/** What a claim met: nothing, another request, the same one under way, or the same one answered. */
export type IdempotencyStanding =
  | { readonly kind: 'CLAIMED' | 'REUSED' | 'RUNNING' }
  | { readonly kind: 'ANSWERED'; readonly answer: KeptAnswer };

/** An answer as it went out: status and body. */
export interface KeptAnswer {
  readonly status: number;
  readonly body: string;
}

/** What a store is opened with. */
export interface StoreOptions {
  readonly dataDir: string;
  readonly environment: Environment;
}
