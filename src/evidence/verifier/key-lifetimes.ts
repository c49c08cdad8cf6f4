import type { Checkpoint } from './checkpoint.ts';
import { VerificationFailure } from './failure.ts';
import type { LogEventLeaf } from './leaf.ts';
import type { VerifierKey } from './note.ts';

/** From which leaf of a log to which a key signs it, by what the leaves say. */
export interface KeyLifetime {
  readonly vkey: string;
  /** The leaf that adds it. */
  readonly from: number;
  /** The leaf that ends it; undefined if there is none. */
  readonly until: number | undefined;
}

/** The most keys that are kept: a log that has more is none of this registry. */
const keysMax = 10_000;

/** The lifetimes after one more event of the log: KEY_ADDED, KEY_RETIRED, or LOG_FORKED, which ends all keys. */
export function lifetimesAfter(
  lifetimes: readonly KeyLifetime[],
  { act, detail }: LogEventLeaf,
  index: number,
): readonly KeyLifetime[] {
  const vkey = detail.get('vkey');
  const ended = (isEnding: (lifetime: KeyLifetime) => boolean) =>
    lifetimes.map((lifetime) =>
      lifetime.until === undefined && isEnding(lifetime) ? { ...lifetime, until: index } : lifetime,
    );
  if (act === 'LOG_FORKED') return ended(() => true);
  if (act !== 'KEY_ADDED' && act !== 'KEY_RETIRED') return lifetimes;
  if (typeof vkey !== 'string' || lifetimes.length === keysMax)
    throw new VerificationFailure(
      'FORKED',
      `leaf ${index} of the log does not say which key, or is one too many`,
    );
  return act === 'KEY_ADDED'
    ? [...lifetimes, { vkey, from: index, until: undefined }]
    : ended((lifetime) => lifetime.vkey === vkey);
}

/**
 * Checks that a checkpoint is signed by a key that the log had added and not ended in the leaves that the checkpoint covers.
 * Throws VerificationFailure BAD_SIGNATURE.
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
    return `${vkey} (${last === undefined ? 'never added' : `ended by leaf ${last.until}`})`;
  });
  throw new VerificationFailure(
    'BAD_SIGNATURE',
    `the checkpoint of ${size} leaves is signed by no given key that the log says signs it: ${ends.join(', ')}`,
  );
}
