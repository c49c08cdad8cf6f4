import type { Violation } from './violation.ts';

/** The largest amount: 2^53-1 minor units, the largest integer that every JSON reader keeps exact. */
export const moneyMax = BigInt(Number.MAX_SAFE_INTEGER);

/** Checks an amount in minor units; undefined means that it was not sent. */
export function checkMoney(field: string, value: bigint | undefined, min: bigint): Violation[] {
  if (value === undefined) return [{ field, rule: `is required: an integer from ${min} to ${moneyMax}` }];
  if (value >= min && value <= moneyMax) return [];
  return [{ field, rule: `must be an integer from ${min} to ${moneyMax}, in minor units` }];
}
