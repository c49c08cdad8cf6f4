import type { Checkpoint } from './checkpoint.ts';
import { VerificationFailure } from './failure.ts';
import { isConsistent } from './tree.ts';

/** How a checkpoint stands to the newest one that was seen before, the pin. */
export type PinComparison =
  /** They are of the same tree, or the older of them is proven to be the beginning of the newer. */
  | { readonly isCompared: true; readonly isNewer: boolean }
  /** They are of different sizes, and there is nothing at hand that tells whether one continues the other. */
  | { readonly isCompared: false; readonly why: string };

/**
 * Compares a checkpoint with the pin: both are of one log, and trees of one size have one root. Between different sizes that
 * takes a consistency proof from the smaller to the larger. Throws VerificationFailure FORKED.
 */
export function compareWithPin(
  pin: Checkpoint,
  checkpoint: Checkpoint,
  consistencyPath?: readonly Uint8Array[],
): PinComparison {
  if (pin.origin !== checkpoint.origin) {
    throw forked(
      `the pin is of the log ${pin.origin}, this checkpoint of ${checkpoint.origin}: this is the pin of another log, or the log ` +
        'was forked and left what it published behind; then its operator has to tell why, and the new log gets a pin of its own',
    );
  }
  const isNewer = checkpoint.size > pin.size;
  if (checkpoint.size !== pin.size && consistencyPath === undefined) {
    return {
      isCompared: false,
      why: `the pin is of ${pin.size} leaves, this checkpoint of ${checkpoint.size}: only the log itself can prove that one continues the other`,
    };
  }
  const [older, newer] = isNewer ? [pin, checkpoint] : [checkpoint, pin];
  if (!isConsistent(older, newer, consistencyPath ?? [])) {
    throw forked(
      checkpoint.size === pin.size
        ? `the log showed two different trees of ${pin.size} leaves: this one, and the one of the pin`
        : `the tree of ${newer.size} leaves does not begin with the one of ${older.size}: the log was rewritten, or shows different people different logs`,
    );
  }
  return { isCompared: true, isNewer };
}

const forked = (what: string): VerificationFailure => new VerificationFailure('FORKED', what);
