/** The rules for JSON of the wrong type, over both APIs. Each completes a sentence that begins with the field. */
export const typeRules = {
  string: 'must be a string',
  boolean: 'must be true or false',
  array: 'must be an array',
  object: 'must be an object',
  integer: 'must be a whole number',
} as const;

/** The rule for the names of an enum; the value 0 has none. */
export function wordRule(values: readonly { readonly name: string; readonly number: number }[]): string {
  const words = values.filter(({ number }) => number !== 0).map(({ name }) => name);
  return `must be ${words.join(' or ')}`;
}
