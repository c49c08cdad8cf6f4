const decimal = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * The integer that a decimal text denotes exactly: 1e3 and 1000.0 are integers. Undefined if it denotes none. A number with more
 * digits than `max` becomes ±(max + 1), so that 1e999999999 costs no memory.
 */
export function integerOf(text: string, max: bigint): bigint | undefined {
  const [, sign, whole = '', fraction = '', exponent = '0'] = decimal.exec(text) ?? [];
  if (sign === undefined) return undefined;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  if (digits === '') return 0n;
  const significant = digits.slice(0, lengthWithoutZeros(digits));
  const zeros = Number(exponent) - fraction.length + digits.length - significant.length;
  if (zeros < 0) return undefined;
  const tooLong = significant.length + zeros > String(max).length;
  const magnitude = tooLong ? max + 1n : BigInt(significant) * 10n ** BigInt(zeros);
  return sign === '-' ? -magnitude : magnitude;
}

/** The length of a text without trailing zeros. A pattern would take quadratic time. */
function lengthWithoutZeros(digits: string): number {
  let length = digits.length;
  while (digits[length - 1] === '0') length -= 1;
  return length;
}
