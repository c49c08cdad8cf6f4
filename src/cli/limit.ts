import { wholeNumber } from './agreement.ts';
import { UsageError, type Words } from './command.ts';

/** The whole number that a flag gives, `least` or more; undefined without the flag. Throws UsageError. */
export function readWhole(words: Words, flag: string, least: number): number | undefined {
  const text = words.text(flag);
  if (text === undefined) return undefined;
  const number = wholeNumber(text);
  if (!Number.isSafeInteger(number) || number < least)
    throw new UsageError(`takes --${flag} as a whole number of ${least} or more, not '${text}'`);
  return number;
}

/** The first `limit` of these, or all of them where it is undefined. */
export async function* firstOf<T>(items: AsyncIterable<T>, limit: number | undefined): AsyncGenerator<T> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  for await (const item of items) {
    yield item;
    left -= 1;
    if (left <= 0) return;
  }
}
