import type { Clock } from '../domain/clock.ts';
import { ApiError } from '../domain/reason.ts';
import { withTimeout } from '../lib/timing.ts';
import { perform, type Store } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** How long a write may take to be durable, in milliseconds. */
const writeMaxMs = 1_000;
/** How long the result of a write is kept, in milliseconds: at most one write in that time. */
const holdsMs = 1_000;

/** How long writes must succeed after a failed one, in milliseconds. */
const steadyMs = 5_000;
/** Free bytes needed after a failed write: the test write may fit on a full disk, calls may not. */
const roomBytes = 1_048_576;

const tooLate = new Error(`a write takes longer than ${writeMaxMs / 1_000} s`);

/**
 * Fails while the database file is not in place, while a test write is not durable within a second, and after a failed write
 * until test writes have succeeded for five seconds.
 */
export function createStorePart(
  store: Pick<Store, 'execute' | 'findFault' | 'metrics' | 'storageErrors'>,
  clock: Clock,
): ReadinessPart {
  let latest: Promise<string | undefined> = Promise.resolve(undefined);
  let latestAtMs = Number.NEGATIVE_INFINITY;
  let isWriting = false;
  /** The number of write errors that are over. */
  let over = store.storageErrors().failures;
  /** Since when test writes have succeeded, and the number of write errors by then; undefined if the last one failed. */
  let good: { readonly failures: number; readonly sinceMs: number } | undefined;

  async function write(): Promise<string | undefined> {
    isWriting = true;
    const { failures } = store.storageErrors();
    try {
      await perform(store, { kind: 'RewriteNothing' });
      if (failures > over) await checkRoom();
      if (good?.failures !== failures) good = { failures, sinceMs: clock.monotonicMs() };
      return undefined;
    } catch (error) {
      good = undefined;
      const cause = error instanceof ApiError ? (error.cause ?? error) : error;
      return `a write failed: ${cause instanceof Error ? cause.message : cause}`;
    } finally {
      isWriting = false;
    }
  }

  async function checkRoom(): Promise<void> {
    const { files } = await store.metrics();
    if (files?.freeBytes !== undefined && files.freeBytes < roomBytes)
      throw new Error(`the disk has ${files.freeBytes} bytes left`);
  }

  /** Returns the last write error, if it is not over. */
  function findWriteError(): string | undefined {
    const { failures, lastFailure } = store.storageErrors();
    const isSteady = good?.failures === failures && clock.monotonicMs() - good.sinceMs >= steadyMs;
    if (isSteady) over = failures;
    return failures > over ? lastFailure : undefined;
  }

  return {
    name: 'store',
    findFault: async () => {
      const fault = store.findFault();
      if (fault !== undefined) return fault;
      const nowMs = clock.monotonicMs();
      // A slow store gets no second test write.
      if (!isWriting && nowMs - latestAtMs >= holdsMs) {
        latestAtMs = nowMs;
        latest = withTimeout(clock, { ms: writeMaxMs, reason: tooLate }, write).catch(() => tooLate.message);
      }
      return (await latest) ?? findWriteError();
    },
  };
}
