import { isSecure } from '../domain/address.ts';
import type { Environment } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import type { InstructionKind } from '../domain/escrow.ts';
import type { EscrowTerms } from '../domain/escrow-terms.ts';
import type { PartyRules, ProviderIds } from '../domain/party.ts';
import type { PaymentSnapshot } from '../domain/payment.ts';
import type { Violation } from '../domain/violation.ts';

/**
 * A payment provider. It holds or reserves the money; the service instructs it and looks up payments.
 *
 * Idempotence: an instruction is known by its instructionId. Sent again under the same id it has no further effect, whether
 * the first one arrived before, arrives later or is being carried out.
 *
 * Truth: `instruct` and `lookUp` resolve to what the provider has recorded and will not take back; money only moves forward
 * (see PaymentStatus). `instruct` resolves to the status after the instruction. If it is not the requested one, the
 * instruction is declined and will not be carried out later. The one exception is a FREEZE that is AWAITING_BUYER, which
 * continues when the buyer has acted. After a CANCEL that left the money VOID, no hold is made for the order, even if its FREEZE
 * arrives later.
 *
 * Ignorance: a promise that rejects, or never resolves, says nothing: the instruction may have been carried out, or may be
 * later. Nothing else may become a rejection, and nothing doubtful a result.
 *
 * Concurrency: calls for different orders may overlap; an order has one at a time. An aborted signal cancels the call; its
 * result is then not known.
 */
export interface PaymentProvider {
  /** Checks the credentials with a cheap request that changes nothing. Rejects if no response says anything about them. */
  checkAccess(signal: AbortSignal): Promise<Access>;
  /** Returns the fields of an order that the provider would never accept, before anything is stored. */
  check(terms: Pick<PaymentOrder, 'amount' | 'currency'>): readonly Violation[];
  instruct(instruction: PaymentInstruction, signal: AbortSignal): Promise<PaymentSnapshot>;
  /** Returns where the money of an order is now. */
  lookUp(order: PaymentOrder, signal: AbortSignal): Promise<PaymentSnapshot>;
  readonly notificationMethod: 'GET' | 'POST';
  /**
   * Reads a notification. Throws SIGNATURE_INVALID if it is not from the provider or too old; INVALID_JSON if it cannot be read;
   * VALIDATION_FAILED, with what to change at the provider, if this deployment does not accept its kind.
   */
  readNotification(notification: SentNotification): Notification;
  /** Finds the orders of a resource in a notification; undefined if it has none. Rejects like `lookUp`. */
  subjectOf?(resource: string, signal: AbortSignal): Promise<NotificationSubject | undefined>;
  /** Ends all work of the provider in this process. */
  close(): Promise<void>;
}

/**
 * The result of a check of credentials. `why` is for the operator, without a secret.
 *
 * - ACCEPTED: the provider answered a request that needs them.
 * - REJECTED: the provider rejected them, or they lack a permission. Nothing is carried out until they change.
 * - UNREACHABLE: there is no response, or one that says nothing about them.
 */
export type Access =
  | { readonly kind: 'ACCEPTED' }
  | { readonly kind: 'REJECTED' | 'UNREACHABLE'; readonly why: string };

/**
 * How a request to a provider fails:
 *
 * - UNANSWERED: the service does not wait for the response any more.
 * - UNREACHABLE: there is no connection.
 * - CREDENTIALS_REJECTED: the provider rejects the credentials.
 * - OVERLOADED: the provider accepts no more requests now.
 * - FAILED: anything else.
 */
export const failureKinds = [
  'UNANSWERED',
  'UNREACHABLE',
  'CREDENTIALS_REJECTED',
  'OVERLOADED',
  'FAILED',
] as const;

/** One of `failureKinds`. */
export type FailureKind = (typeof failureKinds)[number];

/** Why a request to a provider failed, if it is known. Its message can be logged. */
export class ProviderFailure extends Error {
  override name = 'ProviderFailure';
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** An escrow order as the provider gets it. */
export interface PaymentOrder extends Pick<EscrowTerms, 'amount' | 'buyerId' | 'sellerId'> {
  /** ISO 4217 code. */
  readonly currency: string;
  /** Names the order at the provider, unique over all deployments that share an account there. */
  readonly holdId: string;
  readonly escrowId: string;
  /** The ids of buyer and seller at the provider; undefined if it needs none. */
  readonly buyer?: ProviderIds | undefined;
  readonly seller?: ProviderIds | undefined;
  /** Unix milliseconds, before any instruction of the order. */
  readonly openedAtMs: number;
  /** PaymentSnapshot.reference of an earlier response. */
  readonly reference: string | undefined;
}

/** One instruction for an order. */
export interface PaymentInstruction extends PaymentOrder {
  /** The idempotency key. */
  readonly instructionId: string;
  readonly kind: InstructionKind;
}

/** A notification as sent. */
export interface SentNotification {
  /** The query of its target, as it was sent; '' if there is none. */
  readonly query: string;
  /** By lower-case name; the values keep their order. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: Uint8Array;
  /** Unix seconds. */
  readonly nowS: number;
}

/** A genuine notification. It is a reason for a look-up, never a provider status. */
export interface Notification {
  /** Unique at the provider. */
  readonly eventId: string;
  /**
   * The order; undefined if it is about none of ours. A resource is an object at the provider that no order refers to:
   * `subjectOf` finds the order.
   */
  readonly about: NotificationSubject | { readonly resource: string } | undefined;
}

/**
 * An order, by PaymentOrder.holdId or by PaymentSnapshot.reference; or the orders that a buyer may contest together. Those are the
 * orders of a buyer with these provider ids that are or may be RELEASED. `openedSinceMs` is in Unix milliseconds.
 */
export type NotificationSubject =
  | { readonly holdId: string }
  | { readonly reference: string }
  | { readonly buyer: ProviderIds; readonly openedSinceMs: number };

/** A provider that a deployment can choose: its settings, and how to open it. `Values` has a member for each setting. */
export interface ProviderKind<Values = unknown> {
  /** The name in the setting and in the database. */
  readonly name: string;
  /** False if it is a simulation, which production rejects. */
  readonly movesMoney: boolean;
  /** Currencies with other minor units than ISO 4217. No deployment can choose them: an amount would be wrong by a factor. */
  readonly otherUnits: readonly string[];
  /** The ISO 4217 codes that a deployment can choose with it; undefined for any. */
  readonly currencies?: readonly string[];
  /** The provider ids of registered parties; undefined if parties need no registration. */
  readonly parties: PartyRules | undefined;
  /** Files that it creates in the data folder, beside a complete database. */
  readonly ownFiles: readonly string[];
  /** Its settings, in the order of the help; the variables begin with ARTSEAL_ and its name. */
  readonly settings: { readonly [Member in keyof Values]: Setting<Values[Member]> };
  /** Opens it. Loads its libraries, which nothing loads before. */
  open(values: Values, surroundings: Surroundings): Promise<PaymentProvider>;
}

/** What a provider gets from the process. */
export interface Surroundings {
  /** A folder that exists. */
  readonly dataDir: string;
  readonly clock: Clock;
  /**
   * Accepts a notification of a provider in this process. Resolves once it is stored, rejects if it has to be sent again.
   * Undefined if the process serves nothing.
   */
  readonly notify?: ((notification: Notification) => Promise<void>) | undefined;
}

/** A setting: its environment variable, and how to read the value. */
export interface Setting<Value = unknown> {
  readonly variable: string;
  /** The default; '' if the setting is required. */
  readonly fallback: string;
  /** The text of the help. */
  readonly meaning: string;
  /** Set if messages must not repeat the value. */
  readonly secret?: true;
  /** Set if the value names a file to read. Other users of the machine must not be able to change it. */
  readonly namesFile?: true;
  /** Set if the value names a file that is read later, and again after changes. Others must not be able to change it. */
  readonly watchesFile?: true;
  /** Set if everybody may read that file. */
  readonly isPublic?: true;
  /**
   * Reads the value, or the text of the file that it names. Throws SettingError with the broken rule, another Error with the
   * reason why the value cannot be used, and what `environment` throws.
   */
  read(text: string, environment: () => Environment): Value;
}

/** A setting breaks a rule. The message is the rule, and follows the variable's name: "must be https". */
export class SettingError extends Error {
  override name = 'SettingError';
}

/** Returns the text if it matches. Throws SettingError with the rule otherwise. */
export function matching(text: string, pattern: RegExp, rule: string): string {
  if (!pattern.test(text)) throw new SettingError(rule);
  return text;
}

/**
 * Reads the origin of an API, which must be the provider's own in production. Throws SettingError, and what `environment`
 * throws; the other rules are checked first, so that their errors are reported too.
 */
export function readOrigin(text: string, own: string, environment: () => Environment): string {
  const url = URL.parse(text);
  if (url === null || url.href !== `${url.origin}/`) {
    throw new SettingError(`must be an origin such as ${own}, without a path`);
  }
  if (!isSecure(url)) throw new SettingError('must be https, or http on a loopback address');
  if (environment() === 'production' && url.origin !== own) {
    throw new SettingError(`must be ${own} in production`);
  }
  return url.origin;
}
