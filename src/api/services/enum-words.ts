import type { Violation } from '../../domain/violation.ts';

/** Some words of an enum of the schema, which messages have as numbers; 0 means none. */
export function enumWords<Word extends string>(
  words: readonly Word[],
  numbers: Readonly<Record<Word, number>>,
) {
  /** The word of a number; undefined for 0 and for an unknown number. */
  const of = (value: number) => words.find((word) => numbers[word] === value);
  const checkRequired = (field: string, value: number): Violation[] =>
    of(value) === undefined ? [{ field, rule: `must be ${words.join(' or ')}` }] : [];
  return {
    of,
    /** Checks a number that must name a word. */
    checkRequired,
    /** Checks a number that may be 0. */
    check: (field: string, value: number) => (value === 0 ? [] : checkRequired(field, value)),
  };
}
