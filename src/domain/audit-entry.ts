import { checkText, type TextBounds } from './text.ts';
import type { Violation } from './violation.ts';

/** Who changes something that operators answer for, or shares evidence, when and why. */
export interface Actor {
  /** `token tok_… (name)`, `user name (uid)` of the machine, or `platform name`. */
  readonly actor: string;
  /** Unix seconds. */
  readonly atS: number;
  /** Why, in the operator's own words. */
  readonly reason: string | undefined;
}

/** Bounds of the reason that is given for a change, in code points. */
export const reasonBounds: TextBounds = { min: 1, max: 500 };

/** Checks the reason for a change; empty is none. */
export function checkReason(reason: string): Violation[] {
  return reason === '' ? [] : checkText('reason', reason, reasonBounds);
}

/** One change that an operator made. */
export interface AuditEntry extends Actor {
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
