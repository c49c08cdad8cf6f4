/**
 * What happens to money at the provider without an instruction.
 *
 * - BUYER_ACTS, BUYER_FAILS: the buyer did what was asked for, and the hold is made; or could not, and there will be none.
 * - RETURN_PART, RETURN_ALL: the seller, who was paid out, gives half of what is left back to the buyer, or all of it.
 * - DISPUTE, DISPUTE_WON, DISPUTE_LOST: the buyer contests what was paid out; the seller keeps it, or has to give it back.
 */
export type MoneyEvent =
  | 'BUYER_ACTS'
  | 'BUYER_FAILS'
  | 'RETURN_PART'
  | 'RETURN_ALL'
  | 'DISPUTE'
  | 'DISPUTE_WON'
  | 'DISPUTE_LOST';

/** An event that is to come. */
export interface Coming {
  readonly event: MoneyEvent;
  /** Milliseconds after what leads to it. */
  readonly afterMs: number;
}

/** What becomes of the money of an order by itself, whatever goes wrong with the messages about it. */
export interface Course {
  /** What the buyer does who has to act before the hold is made: [] for nothing. Undefined if there is nothing to do. */
  readonly buyer?: readonly Coming[];
  /** What happens after the pay-out. */
  readonly afterPayout?: readonly Coming[];
  /** Minor units that are held in place of what was agreed. */
  readonly amount?: bigint;
  /** How long the hold lasts, in milliseconds; Infinity for ever. */
  readonly holdLastsMs?: number;
  /** The provider does what it must not: it pays out at once what it is to hold, and forgets what it is to pay. */
  readonly contradicts?: boolean;
}
