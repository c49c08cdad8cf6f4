import type { Violation } from './violation.ts';

/** The largest amount: 2^53-1 minor units, the largest integer that every JSON reader keeps exact. */
export const moneyMax = BigInt(Number.MAX_SAFE_INTEGER);

const whole = 'a whole number of minor units (fen, cents)';

/** Checks an amount in minor units; undefined means that it was not sent. */
export function checkMoney(field: string, value: bigint | undefined, min: bigint): Violation[] {
  const form = `${whole} from ${min} to ${moneyMax}`;
  if (value === undefined) return [{ field, rule: `is required: ${form}` }];
  return value >= min && value <= moneyMax ? [] : [{ field, rule: `must be ${form}` }];
}
