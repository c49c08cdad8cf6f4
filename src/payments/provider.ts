import type { Environment } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import type { InstructionKind } from '../domain/escrow.ts';
import type { EscrowTerms } from '../domain/escrow-terms.ts';
import type { PartyRules, ProviderIds } from '../domain/party.ts';
import type { PaymentSnapshot } from '../domain/payment.ts';
import type { Violation } from '../domain/violation.ts';

/**
 * A payment provider: it holds the money or has it reserved, the service instructs it and asks it.
 *
 * Idempotence: an instruction is known by its instructionId. Given again under the same id, it has no further
 * effect, whether the first one arrived before, arrives later or is being carried out.
 *
 * Truth: `instruct` and `lookUp` resolve with what the provider has written down and will not take back; money
 * only moves forward (see PaymentStatus). What `instruct` resolves with is the status after the instruction: where
 * it is not the one that was asked for, the instruction is declined and will not be carried out later. The one
 * exception is a FREEZE that is AWAITING_BUYER, which goes on when the buyer has acted. After a CANCEL that left the money
 * VOID, no hold is made for the order, even if its FREEZE is on the way.
 *
 * Ignorance: a promise that rejects, or never resolves, says nothing: the instruction may have been carried out,
 * or may be later. No other outcome may be made into a rejection, and no doubtful one into an answer.
 *
 * Concurrency: calls for different orders may overlap; for one order there is one at a time. An aborted signal asks
 * to give the call up; its outcome is then not known.
 */
export interface PaymentProvider {
  /**
   * Asks what the provider makes of the credentials of this deployment, by a cheap question that changes nothing and
   * needs them. Never rejects: no answer, an aborted signal included, is UNREACHABLE.
   */
  checkAccess(signal: AbortSignal): Promise<Access>;
  /** What of an order the provider would never hold, before anything is stored: fields of a request and their rules. */
  check(terms: Terms): readonly Violation[];
  /** Gives an instruction. */
  instruct(instruction: PaymentInstruction, signal: AbortSignal): Promise<PaymentSnapshot>;
  /** Asks where the money of an order is now. */
  lookUp(order: PaymentOrder, signal: AbortSignal): Promise<PaymentSnapshot>;
  /** How notifications are sent. */
  readonly notificationMethod: NotificationMethod;
  /**
   * Reads a notification as it came over the wire. Throws SIGNATURE_INVALID if it is not the provider's own, or
   * too old to be; INVALID_JSON if it is, and cannot be read; VALIDATION_FAILED, with what to change at the provider, if
   * it is not of the kind that this deployment takes.
   */
  readNotification(notification: SentNotification): Notification;
  /**
   * Asks which orders a resource is of, where notifications name such; undefined if it is of none of ours. Rejects as
   * `lookUp` does.
   */
  subjectOf?(resource: string, signal: AbortSignal): Promise<NotificationSubject | undefined>;
  /** Ends whatever the provider's side has under way in this process. */
  close(): Promise<void>;
}

/**
 * What a provider makes of credentials; `why` is in words for the operator, without a secret.
 *
 * - ACCEPTED: it answered what only their owner may ask.
 * - REJECTED: it refused them, or they do not allow what the service needs. Nothing will be carried out until they change.
 * - UNREACHABLE: it gave no answer, or one that says nothing of them.
 */
export type Access =
  | { readonly kind: 'ACCEPTED' }
  | { readonly kind: 'REJECTED' | 'UNREACHABLE'; readonly why: string };

/**
 * How a request to a provider fails, for whoever looks after the deployment:
 *
 * - UNANSWERED: nobody waits for the answer any more.
 * - UNREACHABLE: there is no connection to it.
 * - CREDENTIALS_REJECTED: it does not accept those that it is called with.
 * - OVERLOADED: it takes no more requests now.
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

/** Why a provider did not answer, where it knows. Its message can be logged. */
export class ProviderFailure extends Error {
  override name = 'ProviderFailure';
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What an order is over, and who pays and is paid, by the ids of the platform. */
export interface Terms extends Pick<EscrowTerms, 'buyerId' | 'sellerId'> {
  /** Minor units. */
  readonly amount: bigint;
  /** ISO 4217 code. */
  readonly currency: string;
}

/** What the provider is told of an escrow order. */
export interface PaymentOrder extends Terms {
  /** Names the order at the provider, unique over all deployments that share an account there. */
  readonly holdId: string;
  readonly escrowId: string;
  /** The provider's names for who pays and for who is paid; undefined where it needs none. */
  readonly buyer?: ProviderIds | undefined;
  readonly seller?: ProviderIds | undefined;
  /** Unix milliseconds from before any instruction of it. */
  readonly openedAtMs: number;
  /** PaymentSnapshot.reference of an earlier answer. */
  readonly reference: string | undefined;
}

/** One instruction for an order. */
export interface PaymentInstruction extends PaymentOrder {
  /** The idempotency key. */
  readonly instructionId: string;
  readonly kind: InstructionKind;
}

/** The methods of HTTP that notifications come with. */
export type NotificationMethod = 'GET' | 'POST';

/** A notification as sent. */
export interface SentNotification {
  readonly method: string;
  /** Of its target, behind the question mark, as it was sent; '' if there is none. */
  readonly query: string;
  /** By lower-case name; the values in their order. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
  readonly body: Uint8Array;
  /** Unix seconds. */
  readonly nowS: number;
}

/** A genuine notification. It is a reason to ask, never an answer. */
export interface Notification {
  /** Unique at the provider. */
  readonly eventId: string;
  /**
   * Which order it is about; undefined if it is about none of ours. A resource is something at the provider that nothing
   * of an order is stored of: `subjectOf` finds the order.
   */
  readonly about: NotificationSubject | { readonly resource: string } | undefined;
}

/** An order, by PaymentOrder.holdId or by PaymentSnapshot.reference; or what a buyer may contest together. */
export type NotificationSubject =
  | { readonly holdId: string }
  | { readonly reference: string }
  | OrdersOfBuyer;

/** The orders that are or may be RELEASED of a buyer who is registered with these of the provider's names, opened since a time. */
export interface OrdersOfBuyer {
  readonly buyer: ProviderIds;
  /** Unix milliseconds. */
  readonly openedSinceMs: number;
}

/**
 * One of the providers that a deployment can choose: what has to be set for it, and how it is opened. `Values` is what
 * its settings are read into, a member for each.
 */
export interface ProviderKind<Values = unknown> {
  /** As a deployment names it, and as its database remembers it. */
  readonly name: string;
  /** False if it is a simulation, which no production is served by. */
  readonly movesMoney: boolean;
  /**
   * Currencies that it counts in other minor units than ISO 4217, so that an amount would be taken for a hundred times
   * more or less than it is: no deployment can choose both.
   */
  readonly otherUnits: readonly string[];
  /** The ISO 4217 codes that it takes, no other of which a deployment can choose with it; undefined if it takes any. */
  readonly currencies?: readonly string[];
  /** The names that parties have to be registered with; undefined if it takes anybody, and nobody has to be registered. */
  readonly parties: PartyRules | undefined;
  /** Files that it makes in the data folder, and only beside a complete database. */
  readonly ownFiles: readonly string[];
  /** Its settings, in the order of the help; the variables begin with ARTSEAL_ and its name. */
  readonly settings: { readonly [Member in keyof Values]: Setting<Values[Member]> };
  /** Opens it with what its settings were read into. The libraries that it is made of are loaded here, not before. */
  open(values: Values, surroundings: Surroundings): Promise<PaymentProvider>;
}

/** What a provider finds in the process that it is opened in. */
export interface Surroundings {
  /** A folder that exists. */
  readonly dataDir: string;
  readonly clock: Clock;
  /**
   * Takes a notification of a provider in this process: resolves once it is stored, rejects if it has to be sent again.
   * Undefined where nothing is served.
   */
  readonly notify?: ((notification: Notification) => Promise<void>) | undefined;
}

/** A setting: its variable of the environment, and how what it says is read. */
export interface Setting<Value = unknown> {
  readonly variable: string;
  /** What it is when unset; '' if there is nothing that it could be, and then a provider's own has to be set. */
  readonly fallback: string;
  /** What it is for, as the help shows it. */
  readonly meaning: string;
  /** Set where messages must not repeat the value. */
  readonly secret?: true;
  /** Set where the value names a file whose text is read; other users of the machine must not be able to change it. */
  readonly namesFile?: true;
  /** Set where the value names a file that is read later, and again when it changes; others must not change it either. */
  readonly watchesFile?: true;
  /** Set where everybody may read that file. */
  readonly isPublic?: true;
  /**
   * Reads the value, or the text of the file that it names. Throws SettingError with the rule that it breaks, any other
   * Error with the reason why it cannot be used, and what `environment` throws where that cannot be read.
   */
  read(text: string, environment: () => Environment): Value;
}

/** A setting breaks a rule, which is the message and follows the name of the variable: "must be https". */
export class SettingError extends Error {
  override name = 'SettingError';
}
