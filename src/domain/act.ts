/** Who changes something that operators answer for, when and why. */
export interface Actor {
  /** `token tok_… (name)`, or `user name (uid)` of the machine. */
  readonly actor: string;
  /** Unix seconds. */
  readonly atS: number;
  /** Why, in the operator's own words. */
  readonly reason: string | undefined;
}

/** One change that an operator made. */
export interface Act extends Actor {
  /** Counts up. */
  readonly id: number;
  /** What was done, as the command line calls it: `key suspend`. */
  readonly action: string;
  /** On what, by its public name. */
  readonly subject: string;
  /** What it was before, as JSON; undefined if it was not there. */
  readonly before: string | undefined;
  /** What it is since, as JSON; undefined if it is gone. */
  readonly after: string | undefined;
}
