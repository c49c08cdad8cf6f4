import { ApiError, type Hints, type Reason } from './reason.ts';

/** A field that breaks its rule. */
export interface Violation {
  /** Name of the field as callers write it, for example filingNo. */
  readonly field: string;
  /** Completes a sentence that begins with the field: "must be …", "is required". */
  readonly rule: string;
}

/** Checks a whole number by its inclusive bounds. */
export function checkRange(
  field: string,
  value: number,
  { min, max }: { readonly min: number; readonly max: number },
): Violation[] {
  if (Number.isInteger(value) && value >= min && value <= max) return [];
  return [{ field, rule: `must be an integer from ${min} to ${max}` }];
}

/** The rule of a text with a lone surrogate. The internal API checks it before its library replaces the surrogate. */
export const wellFormedRule = 'must be well-formed Unicode: it has a lone surrogate';

/** Violations that an error names. It only counts the rest. */
const violationsNamedMax = 20;

/** An error with the violations of fields, so that each API can use its own field names. */
export class ValidationError extends ApiError {
  /** The violations that the message names. */
  readonly violations: readonly Violation[];
  /** The number of further violations. */
  readonly more: number;

  constructor(reason: Reason, violations: readonly Violation[], message?: string, more = 0) {
    super(reason, message ?? sentences(violations, more));
    const all = firstOfEach(violations);
    this.violations = all.slice(0, violationsNamedMax);
    this.more = more + all.length - this.violations.length;
  }
}

/** An error about one field. `rule` completes a sentence that begins with the field. */
export const fieldError = (reason: Reason, field: string, rule: string): ApiError =>
  new ValidationError(reason, [{ field, rule }]);

/** Throws VALIDATION_FAILED if there are violations. The message names each field once, with the first rule that it breaks. */
export function rejectViolations(violations: readonly Violation[]): void {
  if (violations.length > 0) throw new ValidationError('VALIDATION_FAILED', violations);
}

/**
 * Describes violations: each field once, with the first rule that it breaks. After `violationsNamedMax` fields it gives the
 * number of the others, plus `more`.
 */
export function sentences(violations: readonly Violation[], more = 0): string {
  const all = firstOfEach(violations);
  const named = all.slice(0, violationsNamedMax).map(({ field, rule }) => `${field} ${rule}`);
  const rest = all.length - named.length + more;
  return rest > 0 ? `${named.join('; ')}; and ${rest} more` : named.join('; ');
}

function firstOfEach(violations: readonly Violation[]): Violation[] {
  const fields = new Map<string, Violation>();
  for (const violation of violations)
    if (!fields.has(violation.field)) fields.set(violation.field, violation);
  return [...fields.values()];
}

/** An error as plain data, which can cross threads and be stored. */
export interface ApiErrorData {
  readonly reason: Reason;
  readonly message: string;
  readonly hints: Hints;
  readonly violations?: readonly Violation[] | undefined;
  readonly more?: number | undefined;
}

/** The data of an error, without its cause. */
export function apiErrorData(apiError: ApiError): ApiErrorData {
  const { reason, message, hints } = apiError;
  const data = { reason, message, hints };
  if (!(apiError instanceof ValidationError)) return data;
  const { violations, more } = apiError;
  return { ...data, violations, ...(more > 0 && { more }) };
}

/** The error of such data. */
export function errorOf({ reason, message, hints, violations, more }: ApiErrorData): ApiError {
  return violations === undefined
    ? new ApiError(reason, message, hints)
    : new ValidationError(reason, violations, message, more);
}
