import type { Checkpoint } from '../formats/checkpoint.ts';
import { isSame } from '../formats/encoding.ts';
import { forked } from '../formats/failure.ts';
import { isConsistent } from '../formats/tree.ts';
import { consistencyPath, type PublishedLog } from './published-log.ts';

/** The comparison of a checkpoint with the pin, the newest checkpoint seen before. */
export type PinComparison =
  /** They are the same tree. */
  | { readonly isCompared: true }
  /** Their sizes differ, and only the log can prove that one continues the other. */
  | { readonly isCompared: false; readonly why: string };

/**
 * Compares a checkpoint with one seen before, which `what` names: both are of one log, and trees of one size have one root.
 * Throws VerificationFailure FORKED.
 */
export function compareWithPin(pin: Checkpoint, checkpoint: Checkpoint, what = 'the pin'): PinComparison {
  if (pin.origin !== checkpoint.origin) {
    throw forked(
      `${what} is of the log ${pin.origin}, this checkpoint of ${checkpoint.origin}: it is another log, or the log was forked. ` +
        'Ask its operator why it was forked, and keep a separate pin for the new log',
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
 * Throws VerificationFailure FORKED if the newest checkpoint of a log is of another log than one seen before, of a smaller
 * tree, or of another tree of the same size. Returns whether the sizes are equal.
 */
export function checkNotBehind(seen: Checkpoint, newest: Checkpoint, what = 'the pin'): boolean {
  const { isCompared } = compareWithPin(seen, newest, what);
  if (isCompared || newest.size > seen.size) return isCompared;
  throw forked(
    `the log has ${newest.size} leaves, and had ${seen.size} in the checkpoint of ${what}: it went back, or this is an old copy of it`,
  );
}

/**
 * Verifies with the tiles of a log that the tree of its newest checkpoint begins with one seen before. Throws
 * VerificationFailure FORKED, and the errors of the log.
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
