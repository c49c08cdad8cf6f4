import type { Checkpoint } from '../formats/checkpoint.ts';
import { badSignature, forked } from '../formats/failure.ts';
import type { VerifierKey } from '../formats/note.ts';
import type { LogEventLeaf } from './leaf.ts';

/** When a key signs a log, according to its log events. */
export interface KeyLifetime {
  readonly vkey: string;
  /** The leaf that adds it. */
  readonly from: number;
  /** The leaf that retires it; undefined if there is none. */
  readonly until: number | undefined;
}

/** Keys of a log at most: no registry makes more. */
const keysMax = 10_000;

/** Returns the lifetimes after a further log event: KEY_ADDED, KEY_RETIRED, or LOG_FORKED, which retires all keys. */
export function lifetimesAfter(
  lifetimes: readonly KeyLifetime[],
  { event, detail }: LogEventLeaf,
  index: number,
): readonly KeyLifetime[] {
  const vkey = detail.get('vkey');
  const ended = (isEnding: (lifetime: KeyLifetime) => boolean) =>
    lifetimes.map((lifetime) =>
      lifetime.until === undefined && isEnding(lifetime) ? { ...lifetime, until: index } : lifetime,
    );
  if (event === 'LOG_FORKED') return ended(() => true);
  if (event !== 'KEY_ADDED' && event !== 'KEY_RETIRED') return lifetimes;
  if (typeof vkey !== 'string' || lifetimes.length === keysMax)
    throw forked(`leaf ${index} of the log does not name a key, or there are more than ${keysMax} keys`);
  return event === 'KEY_ADDED'
    ? [...lifetimes, { vkey, from: index, until: undefined }]
    : ended((lifetime) => lifetime.vkey === vkey);
}

/**
 * Checks that a checkpoint is signed by a key that the log added, and did not retire, in the leaves of the checkpoint. Throws
 * VerificationFailure BAD_SIGNATURE.
 */
export function checkSigners(
  lifetimes: readonly KeyLifetime[],
  signers: readonly VerifierKey[],
  { size }: Checkpoint,
): void {
  const signs = ({ from, until = size }: KeyLifetime) => from < size && until >= size;
  const current = lifetimes.filter(signs).map(({ vkey }) => vkey);
  if (size === 0 || signers.some(({ vkey }) => current.includes(vkey))) return;
  const ends = signers.map(({ vkey }) => {
    const last = lifetimes.findLast((lifetime) => lifetime.vkey === vkey);
    return `${vkey} (${last === undefined ? 'never added' : `retired by leaf ${last.until}`})`;
  });
  throw badSignature(
    `the checkpoint of ${size} leaves is signed by no given key that is active according to the log: ${ends.join(', ')}`,
  );
}
