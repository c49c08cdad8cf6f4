import { createHmac } from 'node:crypto';
import { ApiError } from './reason.ts';

const digitsHalf = 2;
const half = 36 ** digitsHalf;
const scrambleRounds = 10;

/** The last number of a year: as many as there are ids of four characters. */
export const escrowSequenceMax = half * half;

/**
 * The escrow id of a sequence (1 to escrowSequenceMax) in a year: ES-<year>-<4 of 0-9A-Z>.
 *
 * A keyed Feistel network over two halves of 36^2 values permutes the sequences, so ids never repeat within
 * a year, and nobody can compute the next one from earlier ones without the key.
 */
export function escrowId(year: number, sequence: number, key: Uint8Array): string {
  if (sequence > escrowSequenceMax) {
    throw new ApiError(
      'ESCROW_NUMBERS_EXHAUSTED',
      `All ${escrowSequenceMax} escrow ids of ${year} are used.`,
    );
  }
  let left = Math.floor((sequence - 1) / half);
  let right = (sequence - 1) % half;
  for (let round = 0; round < scrambleRounds; round += 1) {
    const mac = createHmac('sha256', key).update(`${year}/${round}/${right}`).digest();
    [left, right] = [right, (left + mac.readUIntBE(0, 6)) % half];
  }
  const digits = (value: number) => value.toString(36).toUpperCase().padStart(digitsHalf, '0');
  return `ES-${year}-${digits(left)}${digits(right)}`;
}
