import type { EscrowState, InstructionKind, InstructionStatus } from '../domain/escrow.ts';

/** Age limits, in seconds, that group open orders: ten minutes, an hour, a day, a week. */
export const orderAgesS = [600, 3_600, 86_400, 604_800] as const;

/** Periods, in seconds, within which expiring keys are counted: a day, a week. */
export const keyEndsS = [86_400, 604_800] as const;

/** The period, in seconds, within which expiring holds are counted: a day. */
export const holdEndsS = 86_400;

/** Open instructions that are read, at most: those of the oldest orders. */
export const openInstructionsMax = 1_000;

/** Deliveries to webhooks that are counted, at most. */
export const openDeliveriesMax = 10_000;

/** Webhooks with unsent events whose next event is looked up, at most. */
export const laggingWebhooksMax = 100;

/** Open orders of one state by age: the first count is of those younger than `orderAgesS[0]`, the last of those older than all. */
export interface OpenOrders {
  readonly state: Extract<EscrowState, 'UNPAID' | 'FROZEN'>;
  /** One more than `orderAgesS`. */
  readonly counts: readonly number[];
}

/** Open instructions of one kind and status. */
export interface OpenInstructions {
  readonly kind: InstructionKind;
  readonly status: Extract<InstructionStatus, 'PREPARED' | 'SENT' | 'UNKNOWN'>;
  readonly count: number;
  /** Sum of consecutive provider requests without a response, over their orders. */
  readonly failedAttempts: number;
  /** When the oldest was created, Unix milliseconds. */
  readonly oldestAtMs: number;
}

/** Endpoints and their open deliveries. */
export interface WebhookMetrics {
  /** Healthy: enabled, and the last delivery succeeded. Failing: enabled, and it failed. */
  readonly healthy: number;
  readonly failing: number;
  readonly disabled: number;
  /** Since when the longest-failing endpoint fails, Unix seconds; undefined if none does. */
  readonly failingSinceS: number | undefined;
  /** Deliveries to retry, and those that wait for earlier ones. At most `openDeliveriesMax` are counted in total. */
  readonly pending: number;
  readonly waiting: number;
  /**
   * Since when a healthy endpoint has had something to send, Unix milliseconds: the time of the first event after its cursor,
   * or the due time of a delivery, which may be in the future. Undefined if there is nothing to send.
   */
  readonly waitsSinceMs: number | undefined;
}

/** How much of its filing cap a platform has used in a year. */
export interface CapUse {
  /** Name of the platform. */
  readonly platform: string;
  readonly filings: number;
  readonly cap: number;
}

/** Metrics of the registry. */
export interface RegistryMetrics {
  /** The last number of the year that was issued or skipped. */
  readonly filingNumbers: number;
  readonly escrowNumbers: number;
  /** The platform that has used the greatest part of its filing cap for the year; undefined if none has a cap. */
  readonly nearestCap: CapUse | undefined;
  /** Orders in each final state. */
  readonly settledOrders: Readonly<Record<Exclude<EscrowState, OpenOrders['state']>, number>>;
  readonly openOrders: readonly OpenOrders[];
  /** Orders that need a review. */
  readonly ordersInReview: number;
  /** FROZEN orders whose hold lapses within `holdEndsS`. */
  readonly holdsEnding: number;
  /** Of `openInstructionsMax` at most. */
  readonly openInstructions: readonly OpenInstructions[];
  /** The earliest due time of an order, Unix milliseconds; undefined if none is due. */
  readonly nextLookUpAtMs: number | undefined;
  /** Keys that expire within each of `keyEndsS`. */
  readonly keysEnding: readonly number[];
  /** The position of the newest event; 0 if there was none. */
  readonly newestEvent: number;
  readonly webhooks: WebhookMetrics;
}

/** Metrics that come from stored data. */
export interface MetricCommands {
  /**
   * Reads the metrics as of `nowMs`, the real time in Unix milliseconds, and for a year of the business calendar. It takes some
   * milliseconds per 100,000 orders since the oldest open one, and per 1,000 webhooks.
   */
  ReadMetrics(command: { readonly nowMs: number; readonly year: number }): RegistryMetrics;
}
