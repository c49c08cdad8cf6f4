import type { EscrowState, InstructionKind, InstructionStatus } from '../domain/escrow.ts';

/** Ages, in seconds, by which open orders are told apart: ten minutes, an hour, a day, a week. */
export const orderAgesS = [600, 3_600, 86_400, 604_800] as const;

/** Times ahead, in seconds, within which keys are told to end: a day, a week. */
export const keyEndsS = [86_400, 604_800] as const;

/** Time ahead, in seconds, within which holds are told to lapse: a day. */
export const holdEndsS = 86_400;

/** Open instructions that are looked at, at most: those of the oldest orders. */
export const openInstructionsMax = 1_000;

/** Deliveries to webhooks that are counted, at most. */
export const openDeliveriesMax = 10_000;

/** Webhooks whose next event is looked up where they are behind, at most. */
export const webhooksBehindMax = 100;

/** Open orders of one state: how many are younger than each of `orderAgesS`, but not than the one before, and how many are older. */
export interface OpenOrders {
  readonly state: Extract<EscrowState, 'UNPAID' | 'FROZEN'>;
  /** One more than `orderAgesS`. */
  readonly counts: readonly number[];
}

/** Open instructions of one kind that have come equally far. */
export interface OpenInstructions {
  readonly kind: InstructionKind;
  readonly status: Extract<InstructionStatus, 'PREPARED' | 'SENT' | 'UNKNOWN'>;
  readonly count: number;
  /** Attempts in a row at their orders that the provider left without an answer, all together. */
  readonly failedAttempts: number;
  /** When the oldest of them was written down, Unix milliseconds. */
  readonly oldestAtMs: number;
}

/** Endpoints, and what is to be sent to them. */
export interface WebhookMetrics {
  /** Those that are enabled, and took what they were sent last; those that did not; those that are disabled. */
  readonly healthy: number;
  readonly failing: number;
  readonly disabled: number;
  /** Since when that one fails which fails for longest, Unix seconds; undefined if none does. */
  readonly failingSinceS: number | undefined;
  /** Deliveries that are to be made again, and those that wait for earlier ones: of `openDeliveriesMax` together. */
  readonly pending: number;
  readonly waiting: number;
  /**
   * Since when healthy endpoints could have been sent what they were not, Unix milliseconds: when the first event happened
   * behind the cursor of one, of `webhooksBehindMax`, or a delivery was due; in the future if that is yet to come. Undefined if
   * there is nothing.
   */
  readonly waitsSinceMs: number | undefined;
}

/** How much of its cap on filings a platform has used in a year. */
export interface CapUse {
  /** Name of the platform. */
  readonly platform: string;
  readonly filings: number;
  readonly cap: number;
}

/** What an operator watches of the registry. */
export interface RegistryMetrics {
  /** How many numbers of the year were given out or left out, which is the last one. */
  readonly filingNumbers: number;
  readonly escrowNumbers: number;
  /** The platform that has used the greatest share of its cap on filings of the year; undefined if none has a cap. */
  readonly nearestCap: CapUse | undefined;
  /** Orders that are in each of the final states. */
  readonly settledOrders: Readonly<Record<Exclude<EscrowState, OpenOrders['state']>, number>>;
  readonly openOrders: readonly OpenOrders[];
  /** Orders that wait for a person. */
  readonly ordersInReview: number;
  /** FROZEN orders whose hold lapses within `holdEndsS`. */
  readonly holdsEnding: number;
  /** Of `openInstructionsMax` at most. */
  readonly openInstructions: readonly OpenInstructions[];
  /** When the order was due that the provider is to be asked about first, Unix milliseconds; undefined if none is. */
  readonly nextLookUpAtMs: number | undefined;
  /** Keys that are to end within each of `keyEndsS` and have not ended yet. */
  readonly keysEnding: readonly number[];
  /** The position of the newest event; 0 if there was none. */
  readonly newestEvent: number;
  readonly webhooks: WebhookMetrics;
}

/** What an operator watches. */
export interface MetricCommands {
  /**
   * Metrics of the registry as of `nowMs`, Unix milliseconds; numbers of a year of the business calendar. It takes some
   * milliseconds for each hundred thousand orders that are open, or that were opened since the oldest of them was, and for each
   * thousand webhooks.
   */
  ReadMetrics: {
    readonly takes: { readonly nowMs: number; readonly year: number };
    readonly gives: RegistryMetrics;
  };
}
