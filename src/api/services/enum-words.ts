import type { Violation } from '../../domain/violation.ts';

/** The numbers of an enum of the schema by its words. */
type Numbers<Word extends string> = Readonly<Record<Word, number>>;

/** The word of a number; undefined for 0, which means none, and for an unknown number. */
export function wordOf<Word extends string>(
  words: readonly Word[],
  numbers: Numbers<Word>,
  value: number,
): Word | undefined {
  return words.find((word) => numbers[word] === value);
}

/** Checks a number that may be 0. */
export function checkWord<Word extends string>(
  field: string,
  words: readonly Word[],
  numbers: Numbers<Word>,
  value: number,
): Violation[] {
  return value === 0 ? [] : checkRequiredWord(field, words, numbers, value);
}

/** Checks a number that must name a word. */
export function checkRequiredWord<Word extends string>(
  field: string,
  words: readonly Word[],
  numbers: Numbers<Word>,
  value: number,
): Violation[] {
  if (wordOf(words, numbers, value) !== undefined) return [];
  return [{ field, rule: `must be ${words.join(' or ')}` }];
}
