import type { Checkpoint } from './checkpoint.ts';
import { isSame } from './encoding.ts';
import { VerificationFailure } from './failure.ts';
import { consistencyPath, type PublishedLog } from './published-log.ts';
import { isConsistent } from './tree.ts';

/** How a checkpoint stands to the newest one that was seen before, the pin. */
export type PinComparison =
  /** They are of the same tree. */
  | { readonly isCompared: true }
  /** They are of different sizes, and there is nothing at hand that tells whether one continues the other. */
  | { readonly isCompared: false; readonly why: string };

/**
 * Compares a checkpoint with the pin, or with another one that was seen, which `what` names: both are of one log, and trees of
 * one size have one root. Throws VerificationFailure FORKED.
 */
export function compareWithPin(pin: Checkpoint, checkpoint: Checkpoint, what = 'the pin'): PinComparison {
  if (pin.origin !== checkpoint.origin) {
    throw forked(
      `${what} is of the log ${pin.origin}, this checkpoint of ${checkpoint.origin}: ${what} is of another log, or the log ` +
        'was forked and left what it published behind; then its operator has to tell why, and the new log gets a pin of its own',
    );
  }
  if (checkpoint.size !== pin.size) {
    return {
      isCompared: false,
      why: `${what} is of ${pin.size} leaves, this checkpoint of ${checkpoint.size}: only the log itself can prove that one continues the other`,
    };
  }
  if (!isSame(checkpoint.root, pin.root))
    throw forked(
      `the log showed two different trees of ${pin.size} leaves: this one, and the one of ${what}`,
    );
  return { isCompared: true };
}

/**
 * Throws VerificationFailure FORKED if the newest checkpoint of a log is of another log than one that was seen, of a smaller
 * tree, or of another tree of the same size; whether it is of the same size.
 */
export function checkNotBehind(seen: Checkpoint, newest: Checkpoint, what = 'the pin'): boolean {
  const { isCompared } = compareWithPin(seen, newest, what);
  if (isCompared || newest.size > seen.size) return isCompared;
  throw forked(
    `the log has ${newest.size} leaves, and had ${seen.size} in the checkpoint of ${what}: it went back, or this is an old copy of it`,
  );
}

/**
 * Has a log prove that the tree of its newest checkpoint begins with one that was seen. Throws VerificationFailure FORKED if it
 * does not, and the errors of the log.
 */
export async function checkContinued(
  log: PublishedLog,
  newest: Checkpoint,
  seen: Checkpoint,
  what: string,
): Promise<void> {
  if (checkNotBehind(seen, newest, what)) return;
  if (isConsistent(seen, newest, await consistencyPath(log, seen.size, newest.size))) return;
  throw forked(
    `the tree of ${newest.size} leaves does not begin with the one of ${seen.size} of ${what}: the log was rewritten, or shows different people different logs`,
  );
}

const forked = (what: string): VerificationFailure => new VerificationFailure('FORKED', what);
