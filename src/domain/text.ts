import { type Violation, wellFormedRule } from './violation.ts';

/** Inclusive bounds of a text, in Unicode code points. */
export interface TextBounds {
  readonly min: number;
  readonly max: number;
}

const controlCharacter = /\p{Cc}/u;
const visibleCharacter = /\P{White_Space}/u;

/** Checks a text as sent: its length, no control characters, well-formed Unicode, not only white space. */
export function checkText(field: string, value: string, { min, max }: TextBounds): Violation[] {
  const violation = (rule: string): Violation[] => [{ field, rule }];
  if (value === '') return violation(`is required: ${min} to ${max} characters`);
  // A code point takes one or two UTF-16 units, so for most texts their length alone is enough.
  if (value.length > max && (value.length > 2 * max || [...value].length > max)) {
    return violation(`must have ${min} to ${max} characters`);
  }
  if (!value.isWellFormed()) return violation(wellFormedRule);
  if (controlCharacter.test(value)) return violation('must have no control characters');
  if (!visibleCharacter.test(value)) return violation('must have a character that is not white space');
  return [];
}
