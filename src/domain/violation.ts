import { Refusal } from './reason.ts';

/** A field that breaks its rule. */
export interface Violation {
  /** Name of the field as callers write it, for example filingNo. */
  readonly field: string;
  /** Completes a sentence that begins with the field: "must be …", "is required". */
  readonly rule: string;
}

/** How many violations a message names before it only counts the rest. */
const violationsNamedMax = 20;

/** Throws VALIDATION_FAILED naming each field that fails, once, by the first rule that it breaks. */
export function refuseViolations(violations: readonly Violation[]): void {
  if (violations.length === 0) return;
  const rules = new Map<string, string>();
  for (const { field, rule } of violations) if (!rules.has(field)) rules.set(field, rule);
  const sentences = [...rules].map(([field, rule]) => `${field} ${rule}`);
  const named = sentences.slice(0, violationsNamedMax).join('; ');
  const rest = sentences.length - violationsNamedMax;
  throw new Refusal('VALIDATION_FAILED', rest > 0 ? `${named}; and ${rest} more` : named);
}
