import { type AgreedLimits, tiers } from '../domain/caller.ts';
import type { Words } from './command.ts';

/** The tiers, as a usage line lets choose among them. */
export const tierChoice = Object.keys(tiers).join('|');

/** The number that a word is in digits alone; NaN for any other word, an empty one too. */
export function wholeNumber(word: string): number {
  return /^\d+$/.test(word) ? Number(word) : Number.NaN;
}

/** What `--monthly-quota N|unlimited` says; nothing if it is not given. */
export function quotaOf(words: Words): Omit<AgreedLimits, 'tier'> {
  const quota = words.text('monthly-quota');
  const unlimited = quota === 'unlimited';
  return { monthlyQuota: quota === undefined || unlimited ? undefined : wholeNumber(quota), unlimited };
}
