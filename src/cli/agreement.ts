import { type AgreedLimits, type Tier, tiers } from '../domain/caller.ts';
import { oneOf } from './arguments.ts';
import type { Words } from './command.ts';

/** What `--tier` names; undefined without it. Throws UsageError. */
export const tierOf = (words: Words): Tier | undefined => oneOf(words, 'tier', Object.keys(tiers) as Tier[]);

/** The tiers, as a usage line lets choose among them. */
export const tierChoice = Object.keys(tiers).join('|');

/** The number that a word is in digits alone; NaN for any other word, an empty one too. */
export function wholeNumber(word: string): number {
  return /^\d+$/.test(word) ? Number(word) : Number.NaN;
}

/** What `--monthly-quota N|unlimited` and `--filing-cap N` say; nothing of what is not given. */
export function limitsOf(words: Words): Omit<AgreedLimits, 'tier'> {
  const [quota, cap] = [words.text('monthly-quota'), words.text('filing-cap')];
  const unlimited = quota === 'unlimited';
  const monthlyQuota = quota === undefined || unlimited ? undefined : wholeNumber(quota);
  return { monthlyQuota, unlimited, filingCap: cap === undefined ? undefined : wholeNumber(cap) };
}
