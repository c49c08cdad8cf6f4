/**
 * What JSON of another type than its field is refused with, over every door; each completes a sentence that begins with the
 * field.
 */
export const typeRules = {
  string: 'must be a string',
  wellFormed: 'must be well-formed Unicode: it has a lone surrogate',
  boolean: 'must be true or false',
  array: 'must be an array',
  object: 'must be an object',
  integer: 'must be a whole number',
} as const;

/** What is refused that is none of these words. */
export function wordRule(words: readonly string[]): string {
  return `must be ${words.join(' or ')}`;
}
