import type { Clock } from '../domain/clock.ts';
import { ApiError } from '../domain/reason.ts';
import type { Logger } from '../lib/log.ts';
import { every, withTimeout } from '../lib/timing.ts';
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
 * Fails while the store has a fault, while a test write is not durable within a second, and after a failed write
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

/** Returns the damage that was found and what to do, in words for the operator; undefined if there is none. */
export function findDamage(store: Pick<Store, 'storageErrors'>): string | undefined {
  const { damage } = store.storageErrors();
  return (
    damage &&
    `the database is damaged (${damage}): change nothing in its folder, and restore the last backup, as ` +
      'docs/operate/incidents/database-damaged.md says'
  );
}

/** How often the store is checked, in milliseconds. */
const checkEveryMs = 1_000;

/**
 * Checks once a second whether the store has a fault, and logs each change. Logs damage once. Returns a
 * function that ends the watch.
 */
export function watchStore(
  store: Pick<Store, 'findFault' | 'storageErrors' | 'onStorageError'>,
  clock: Clock,
  log: Logger,
): () => void {
  let known: string | undefined;
  let isDamaged = false;
  const check = () => {
    const fault = store.findFault();
    if (fault !== known && fault !== undefined)
      log.error({ fault }, 'the database cannot be used: all calls are rejected until it can');
    if (fault !== known && fault === undefined) log.info('the database can be used again: calls are served');
    known = fault;
  };
  const checkForDamage = () => {
    const fault = findDamage(store);
    if (fault === undefined || isDamaged) return;
    isDamaged = true;
    log.error({ fault }, 'the database is damaged: the service is not ready until it is restored');
  };
  const loop = every(clock, () => checkEveryMs, check);
  void loop.start();
  checkForDamage();
  const ignore = store.onStorageError(checkForDamage);
  return () => {
    ignore();
    void loop.stop();
  };
}
