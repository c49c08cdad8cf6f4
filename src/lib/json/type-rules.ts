/**
 * What JSON of another type than its field is refused with, over every door; each completes a sentence that begins with the
 * field.
 */
export const typeRules = {
  string: 'must be a string',
  boolean: 'must be true or false',
  array: 'must be an array',
  object: 'must be an object',
  integer: 'must be a whole number',
} as const;

/** What is refused that is no word of an enum; its 0 stands for none. */
export function wordRule(values: readonly { readonly name: string; readonly number: number }[]): string {
  const words = values.filter(({ number }) => number !== 0).map(({ name }) => name);
  return `must be ${words.join(' or ')}`;
}
