import { checkText, type TextBounds } from './text.ts';
import type { Violation } from './violation.ts';

/** Who makes an audited change, when and why. */
export interface Actor {
  /** `token tok_… (name)`, `local:name` for a user of the machine, or `platform name`. */
  readonly actor: string;
  /** Unix seconds. */
  readonly atS: number;
  /** The operator's reason. */
  readonly reason: string | undefined;
}

/** Bounds of the reason, in code points. */
export const reasonBounds: TextBounds = { min: 1, max: 500 };

/** Checks the reason for a change; empty is none. */
export function checkReason(reason: string): Violation[] {
  return reason === '' ? [] : checkText('reason', reason, reasonBounds);
}

/** A change and its reason; empty for none. */
export interface Reasoned {
  readonly reason: string;
}

/** An entry of the audit log. */
export interface AuditEntry extends Actor {
  /** Counts up. */
  readonly id: number;
  /** The action, as on the command line: `key suspend`. */
  readonly action: string;
  /** The public name of what was changed. */
  readonly subject: string;
  /** The state before, as JSON; undefined if it was created. */
  readonly before: string | undefined;
  /** The state after, as JSON; undefined if it was deleted. */
  readonly after: string | undefined;
}
