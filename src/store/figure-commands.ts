import type { EscrowState, InstructionKind, InstructionStatus } from '../domain/escrow.ts';

/** Ages, in seconds, by which open orders are told apart: ten minutes, an hour, a day, a week. */
export const orderAgesS = [600, 3_600, 86_400, 604_800] as const;

/** Times ahead, in seconds, within which keys are told to end: a day, a week. */
export const keyEndsS = [86_400, 604_800] as const;

/** Time ahead, in seconds, within which holds are told to lapse: a day. */
export const holdEndsS = 86_400;

/** Open instructions that are looked at, at most: those of the oldest orders. */
export const openInstructionsMax = 1_000;

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
  /** Attempts in a row at their orders that the institution left without an answer, all together. */
  readonly failedAttempts: number;
  /** When the oldest of them was written down, Unix milliseconds. */
  readonly oldestAtMs: number;
}

/** What an operator watches of the registry. */
export interface RegistryFigures {
  /** How many numbers of the year were given out or left out, which is the last one. */
  readonly filingNumbers: number;
  readonly escrowNumbers: number;
  /** Orders that are in each of the final states. */
  readonly settledOrders: Readonly<Record<Exclude<EscrowState, OpenOrders['state']>, number>>;
  readonly openOrders: readonly OpenOrders[];
  /** Orders that wait for a person. */
  readonly ordersInReview: number;
  /** FROZEN orders whose hold lapses within `holdEndsS`. */
  readonly holdsEnding: number;
  /** Of `openInstructionsMax` at most. */
  readonly openInstructions: readonly OpenInstructions[];
  /** When the order was due that the institution is to be asked about first, Unix milliseconds; undefined if none is. */
  readonly nextLookUpAtMs: number | undefined;
  /** Keys that are to end within each of `keyEndsS` and have not ended yet. */
  readonly keysEnding: readonly number[];
}

/** What an operator watches. */
export interface FigureCommands {
  /**
   * Figures of the registry as of `nowMs`, Unix milliseconds; numbers of a year of the business calendar. It takes some
   * milliseconds for each hundred thousand orders that are open, or that were opened since the oldest of them was.
   */
  ReadFigures: {
    readonly takes: { readonly nowMs: number; readonly year: number };
    readonly gives: RegistryFigures;
  };
}
