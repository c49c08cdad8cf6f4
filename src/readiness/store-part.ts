import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/reason.ts';
import { perform, type Store } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** How long a write may take to be on disk, in milliseconds. */
const writeMaxMs = 1_000;
/** For how long what a write has shown holds, in milliseconds: however many ask, there is one write in that time. */
const holdsMs = 1_000;

/** The store is in its place and keeps a write within a second, as a write shows that changes nothing. */
export function createStorePart(store: Pick<Store, 'execute' | 'findFault'>, clock: Clock): ReadinessPart {
  let shown: Promise<string | undefined> = Promise.resolve(undefined);
  let shownAtMs = Number.NEGATIVE_INFINITY;
  let isWriting = false;

  async function write(): Promise<string | undefined> {
    isWriting = true;
    try {
      await perform(store, { kind: 'RewriteNothing' });
      return undefined;
    } catch (error) {
      const cause = error instanceof Refusal ? (error.cause ?? error) : error;
      return `a write was refused: ${cause instanceof Error ? cause.message : cause}`;
    } finally {
      isWriting = false;
    }
  }

  return {
    name: 'store',
    findFault: () => {
      const displaced = store.findFault();
      if (displaced !== undefined) return displaced;
      const nowMs = clock.monotonicMs();
      // A store that does not answer is not given more to do.
      if (!isWriting && nowMs - shownAtMs >= holdsMs) {
        shownAtMs = nowMs;
        shown = inTime(write(), clock);
      }
      return shown;
    },
  };
}

/** What a write comes to, or that it takes too long. */
async function inTime(written: Promise<string | undefined>, clock: Clock): Promise<string | undefined> {
  const late = Promise.withResolvers<string>();
  const callOff = clock.after(writeMaxMs, () =>
    late.resolve(`a write takes longer than ${writeMaxMs / 1_000} s`),
  );
  try {
    return await Promise.race([written, late.promise]);
  } finally {
    callOff();
  }
}
