import type { Environment, KeyStatus, PlatformStatus, Tier } from '../domain/caller.ts';
import type {
  Decision,
  Escrow,
  EscrowState,
  EscrowTerms,
  Hold,
  OperationKind,
  OperationStatus,
} from '../domain/escrow.ts';
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
 * `durable()`. If `durable()` rejects, none of the effects since the durable point before it remain, unless the
 * files of the store went away while it wrote (see `findFault`): then the message says that it is not known
 * whether they were stored.
 *
 * Concurrency: any number of processes may open the same store, and each sees what the others made durable; one
 * at a time takes calls, and that one alone uses `admission` and `idempotency`.
 *
 * Throws: Refusal with the reason that a verb names; Refusal UNAVAILABLE when the store cannot take or keep
 * the effect (disk full, overloaded, closed), and then it has none, but for that one case of `durable()`.
 */
export interface Store {
  readonly admission: AdmissionStore;
  readonly callers: CallerStore;
  readonly filings: FilingStore;
  readonly escrows: EscrowStore;
  readonly idempotency: IdempotencyStore;
  /**
   * A key of 32 bytes for a purpose of that name: known to this deployment alone, the same in each of its processes and
   * after each restart, and it tells nothing of those for other purposes.
   */
  keyFor(purpose: string): Uint8Array;
  /** Makes this process the one that takes calls, until it closes the store. Throws if another one is. */
  beginServing(): Promise<void>;
  /**
   * Checks that the files of the store are still those that it opened, at the same place: undefined, or what is wrong,
   * in words for the operator. Once something is wrong all verbs are refused with UNAVAILABLE, until this finds it put
   * right. Writes are checked without it, too: `durable()` rejects if the files were not in their place when it was
   * done, and these effects may then be found in them later. Reads rely on calls of this.
   */
  findFault(): string | undefined;
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

/** Items read at a time where all of a list are wanted. */
const itemsPerPage = 100;

/** All items of a list, in its order. */
export async function* allOf<T>(list: (page: PageQuery) => Promise<Page<T>>): AsyncGenerator<T> {
  let from: number | undefined;
  do {
    const page = await list({ from, size: itemsPerPage });
    yield* page.items;
    from = page.next;
  } while (from !== undefined);
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
   * Spends a nonce of a key: true for the first claim, false for each further one whose `nowS` is less than
   * `nonceRetentionS` after or before that of the first.
   */
  claimNonce(claim: NonceClaim): Promise<boolean>;
  /** Counts a call. */
  countCall(callerId: number, month: string): Promise<void>;
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
  /** Unix seconds as of which forgotten nonces may be swept away; `nowS` unless that may be set back. */
  readonly sweepAtS?: number;
}

export type { KeyStatus };

/** An API key and the platform that it identifies. */
export interface StoredKey extends CallerRef {
  readonly id: number;
  /** Public handle. */
  readonly keyId: string;
  readonly apiKey: string;
  readonly sealedSecret: Uint8Array;
  /** As set last; what it is at a time, statusAt tells. */
  readonly status: KeyStatus;
  /** Unix seconds. */
  readonly createdAtS: number;
  /** Unix seconds from which the key counts as revoked; null for never. */
  readonly expiresAtS: number | null;
  readonly tier: Tier;
  /** Calls a month; null for unlimited. */
  readonly monthlyQuota: number | null;
  readonly platformStatus: PlatformStatus;
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
  /** Adds a key to the caller of an existing one, which is to end at `endsAtS`, as `rotate` says. Throws NOT_FOUND; VALIDATION_FAILED. */
  rotateKey(keyId: string, key: NewKey, endsAtS: number): Promise<StoredKey>;
  /** Changes the status of a key. Throws NOT_FOUND; VALIDATION_FAILED for a revoked key, which stays revoked. */
  setKeyStatus(keyId: string, status: KeyStatus): Promise<StoredKey>;
  /** Finds a platform by name. */
  findPlatform(name: string): Promise<Platform | undefined>;
  /** Platforms by age, oldest first. */
  listPlatforms(page: PageQuery): Promise<Page<Platform>>;
  /** Suspends or resumes a platform as a whole; the status of each of its keys stays. Throws NOT_FOUND. */
  setPlatformStatus(name: string, status: PlatformStatus): Promise<Platform>;
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
  readonly tier: Tier;
  /** Calls a month; null for unlimited. */
  readonly monthlyQuota: number | null;
  readonly status: PlatformStatus;
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
  /** Filings that the filter names, newest first. */
  list(filter: FilingFilter, page: PageQuery): Promise<Page<Filing>>;
  provenance(filingNo: string): Promise<Provenance | undefined>;
}

/** Which filings to list; undefined is any. */
export interface FilingFilter {
  readonly owner: number | undefined;
  /** Of the number. */
  readonly year: number | undefined;
}

/** An instant, and what the business calendar calls it. */
export interface BusinessTime {
  readonly atMs: number;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
}

/**
 * Escrow orders, the ledger of what the institution was told, and what it said. A state changes by
 * compare-and-swap alone, and with each change go the end of the instructions that it answers, its row of history
 * and, for RELEASED, the TRANSFER record: all of it or nothing.
 */
export interface EscrowStore {
  /**
   * Stores an UNPAID order with its FREEZE, prepared and due. `owner` must have filed the artwork, unless it is undefined.
   * Throws FILING_NOT_FOUND, PERMISSION_DENIED, ESCROW_ACTIVE, TRANSFERS_EXHAUSTED, ESCROW_NUMBERS_EXHAUSTED.
   */
  open(terms: EscrowTerms, at: BusinessTime, work: Work, owner: number | undefined): Promise<Operation>;
  /**
   * Prepares to pay the money of a FROZEN order out or back, and makes the order due. If that is under way already, the instruction that it
   * is. Throws ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as `wishFor` says.
   */
  prepare(
    kind: 'RELEASE' | 'REFUND',
    escrowId: string,
    at: BusinessTime,
    work: Work,
    owner: number | undefined,
  ): Promise<Operation>;
  /** The instruction that an earlier call under the same idempotency key gave, as it stands. */
  findRepeated(work: Work): Promise<Operation | undefined>;
  /** An instruction as it stands. */
  findOperation(operationId: string): Promise<Operation | undefined>;
  /** Notes that an open instruction is being given; unless something is heard, the order is due at `lookUpAtMs`. */
  send(operationId: string, lookUpAtMs: number): Promise<void>;
  /**
   * Notes that the institution did not answer; the order is due again at `lookUpAtMs`, or earlier if notifications
   * have come since it had so many `notices`.
   */
  leaveOpen(escrowId: string, lookUpAtMs: number, notices: number): Promise<void>;
  /**
   * Writes down what the institution's word came to. False, and nothing is written, if the order has changed since or
   * waits for a person.
   */
  settle(settlement: Settlement, at: BusinessTime): Promise<boolean>;
  /** What settling needs of an order. */
  findCase(escrowId: string): Promise<EscrowCase | undefined>;
  /**
   * Takes the institution that orders are settled at from now on. Throws ESCROW_STATE_CONFLICT if there are orders that
   * another one is still to be asked about, or that wait for a person.
   */
  useInstitution(name: string): Promise<void>;
  /** Makes all orders with an open instruction due. */
  resume(nowMs: number): Promise<void>;
  /**
   * Orders to ask the institution about, longest due first; those due later than `horizonMs`, which the clock was
   * set back from, count as due.
   */
  due(nowMs: number, horizonMs: number, count: number): Promise<readonly string[]>;
  /** Remembers a notification for `notificationRetentionS`, and makes the order that it is about due: true for the first time. */
  notified(eventId: string, holdId: string, nowMs: number): Promise<boolean>;
  /** A person's decision about an order that waits for one. Throws ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as `decisionOn` says. */
  decide(escrowId: string, decision: Decision, operationId: string, nowMs: number): Promise<EscrowCase>;
  /** One order of `owner`, or of anybody if that is undefined. */
  find(escrowId: string, owner: number | undefined): Promise<Escrow | undefined>;
  /** Orders that the filter names, newest first. */
  list(filter: EscrowFilter, page: PageQuery): Promise<Page<Escrow>>;
  /** Orders with all that their settlement needs, newest first. */
  listCases(selection: CaseSelection, page: PageQuery): Promise<Page<EscrowCase>>;
}

/** How long a notification is remembered, in seconds: longer than an institution repeats it. */
export const notificationRetentionS = 2_592_000;

/** Who gives an instruction, and under which names. */
export interface Work extends CallerRef {
  /** Of the instruction, unless an earlier call under the same idempotency key gave one. */
  readonly operationId: string;
  /** The key that the caller claimed for this call, if it did. */
  readonly idempotencyKey: string | undefined;
}

/** An instruction to the institution, and its order as it stands. */
export interface Operation {
  readonly operationId: string;
  readonly kind: OperationKind;
  readonly status: OperationStatus;
  readonly order: Escrow;
}

/** An order with all that its settlement needs. */
export interface EscrowCase {
  readonly order: Escrow;
  /** The operation id of its FREEZE, by which the institution knows it. */
  readonly holdId: string;
  /** Unix milliseconds. */
  readonly openedAtMs: number;
  /** The institution's own name for the hold. */
  readonly reference: string | undefined;
  /** Questions and instructions in a row that were left without an answer. */
  readonly unanswered: number;
  /** Why it waits for a person. */
  readonly attention: string | undefined;
  /** What the institution said that a person accepted; undefined if none did. */
  readonly accepted: Hold | undefined;
  /** How many notifications have come about it. */
  readonly notices: number;
  /** Its open instructions, oldest first. */
  readonly open: readonly Pick<Operation, 'operationId' | 'kind' | 'status'>[];
}

/** What the institution's word comes to. */
export interface Settlement {
  readonly escrowId: string;
  readonly from: EscrowState;
  /** May be the same. */
  readonly to: EscrowState;
  /** Open instructions that it ends. */
  readonly ended: readonly { readonly operationId: string; readonly status: 'CONFIRMED' | 'DECLINED' }[];
  /** An instruction that it makes necessary. */
  readonly prepared: { readonly operationId: string; readonly kind: OperationKind } | undefined;
  readonly reference: string | undefined;
  /** Why a person has to look, and what the institution said, if anything; the order is not due until one decided. */
  readonly attention: { readonly why: string; readonly found: Hold | undefined } | undefined;
  /** Whether the institution did as it was told, so that the next attempt is a first one. */
  readonly isHeard: boolean;
  /** EscrowCase.notices of when the institution was asked. If more have come since, the order is due at once. */
  readonly notices: number;
  /** Unix milliseconds; undefined for never. */
  readonly lookUpAtMs: number | undefined;
}

/** Which cases to list. */
export interface CaseSelection {
  /** Undefined is any. */
  readonly state: EscrowState | undefined;
  /** Only those that wait for a person. */
  readonly isInNeed: boolean;
}

/** Which orders to list; undefined is any. */
export interface EscrowFilter {
  readonly owner: number | undefined;
  readonly state: EscrowState | undefined;
  readonly filingNo: string | undefined;
}

/** How long an idempotency key is remembered, in seconds. */
export const idempotencyRetentionS = 604_800;

/**
 * Idempotency keys: what each stands for, the answer that its repetitions get, and the instruction that its call
 * gave (Work.idempotencyKey).
 */
export interface IdempotencyStore {
  /** Claims a key for a request: also one whose call left no answer, if the request is the same. */
  claim(claim: IdempotencyClaim): Promise<IdempotencyStanding>;
  /** Keeps the answer of the call that claimed the key. */
  keep(callerId: number, key: string, answer: KeptAnswer): Promise<void>;
  /** Forgets a key whose call left neither an answer to keep nor an instruction to go on with. */
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

/** What a claim met: no answer yet, another request, or an answer. */
export type IdempotencyStanding =
  | { readonly kind: 'CLAIMED' | 'REUSED' }
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
  /** ISO 4217 code of all amounts. */
  readonly currency: string;
  /** Whether the store must be there, must not be there and is made, or is made if it is not there. */
  readonly opening: 'EXISTING' | 'NEW' | 'EITHER';
  /** Whether this process is to take calls: where it can be known, it is refused before anything is opened if another one does. */
  readonly serving?: boolean;
  /**
   * Names of files of the folder that are only ever made beside a complete store: with one of them there and the store
   * gone, nothing is made.
   */
  readonly madeLater?: readonly string[];
}
