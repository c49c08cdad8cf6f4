import type { Clock } from '../domain/clock.ts';
import { ApiError } from '../domain/reason.ts';
import { perform, type Store } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** How long a write may take to be on disk, in milliseconds. */
const writeMaxMs = 1_000;
/** For how long what a write has shown holds, in milliseconds: however many ask, there is one write in that time. */
const holdsMs = 1_000;

/** For how long writes have to succeed once the store was refused one, in milliseconds. */
const steadyMs = 5_000;
/** Bytes that have to be free by then: calls need more than the write that is tried, which may fit into what is left of a full disk. */
const roomBytes = 1_048_576;

/**
 * The store is in its place and keeps a write within a second, as a write shows that changes nothing. From the moment that
 * it was refused anything by its disk the part fails, until such writes have succeeded for seconds.
 */
export function createStorePart(
  store: Pick<Store, 'execute' | 'findFault' | 'metrics' | 'storageErrors'>,
  clock: Clock,
): ReadinessPart {
  let shown: Promise<string | undefined> = Promise.resolve(undefined);
  let shownAtMs = Number.NEGATIVE_INFINITY;
  let isWriting = false;
  /** ApiErrors that are over. */
  let over = store.storageErrors().refusals;
  /** Since when writes have succeeded, and how many errors there were by then; undefined if the last one failed. */
  let kept: { readonly refusals: number; readonly sinceMs: number } | undefined;

  async function write(): Promise<string | undefined> {
    isWriting = true;
    const { refusals } = store.storageErrors();
    try {
      await perform(store, { kind: 'RewriteNothing' });
      if (refusals > over) await refuseWithoutRoom();
      if (kept?.refusals !== refusals) kept = { refusals, sinceMs: clock.monotonicMs() };
      return undefined;
    } catch (error) {
      kept = undefined;
      const cause = error instanceof ApiError ? (error.cause ?? error) : error;
      return `a write was refused: ${cause instanceof Error ? cause.message : cause}`;
    } finally {
      isWriting = false;
    }
  }

  async function refuseWithoutRoom(): Promise<void> {
    const { files } = await store.metrics();
    if (files?.freeBytes !== undefined && files.freeBytes < roomBytes)
      throw new Error(`the disk has ${files.freeBytes} bytes left`);
  }

  /** Why the store was refused something by its disk, if that is not over. */
  function findRefusal(): string | undefined {
    const { refusals, lastRejection } = store.storageErrors();
    const isSteady = kept?.refusals === refusals && clock.monotonicMs() - kept.sinceMs >= steadyMs;
    if (isSteady) over = refusals;
    return refusals > over ? lastRejection : undefined;
  }

  return {
    name: 'store',
    findFault: async () => {
      const displaced = store.findFault();
      if (displaced !== undefined) return displaced;
      const nowMs = clock.monotonicMs();
      // A store that does not answer is not given more to do.
      if (!isWriting && nowMs - shownAtMs >= holdsMs) {
        shownAtMs = nowMs;
        shown = inTime(write(), clock);
      }
      return (await shown) ?? findRefusal();
    },
  };
}

/** What a write comes to, or that it takes too long. */
async function inTime(written: Promise<string | undefined>, clock: Clock): Promise<string | undefined> {
  const late = Promise.withResolvers<string>();
  const cancel = clock.after(writeMaxMs, () =>
    late.resolve(`a write takes longer than ${writeMaxMs / 1_000} s`),
  );
  try {
    return await Promise.race([written, late.promise]);
  } finally {
    cancel();
  }
}
