import type { Clock } from '../domain/clock.ts';

/** See `every`. */
export type Repetition = ReturnType<typeof every>;

/**
 * Repeats `work` every `periodMs()` milliseconds, counted from the beginning of a run. A run that takes longer than its
 * period delays the next one: there is never more than one at a time. `work` must not reject.
 */
export function every(
  clock: Pick<Clock, 'monotonicMs' | 'after'>,
  periodMs: () => number,
  work: () => unknown,
) {
  let isStopped = false;
  let isWaiting = false;
  let isWoken = false;
  let cancel = () => {};
  let running: Promise<void> = Promise.resolve();

  function run(): void | Promise<void> {
    const startMs = clock.monotonicMs();
    const end = () => {
      if (!isStopped) schedule(isWoken ? 0 : Math.max(0, periodMs() - (clock.monotonicMs() - startMs)));
    };
    const working = work();
    return working instanceof Promise ? working.then(end) : end();
  }

  function begin(): Promise<void> {
    isWaiting = false;
    isWoken = false;
    running = Promise.resolve(run());
    return running;
  }

  function schedule(ms: number): void {
    isWaiting = true;
    cancel = clock.after(ms, () => void begin());
  }

  return {
    /** Runs the work now. Resolves when this first run has ended; the next ones follow on their own. */
    start: begin,
    /** Runs the work at once: now, or after the run in progress. Does nothing before `start` and after `stop`. */
    wake: (): void => {
      isWoken = true;
      if (!isWaiting) return;
      cancel();
      void begin();
    },
    /** Begins no further run. Resolves when the run in progress has ended. */
    stop: (): Promise<void> => {
      isStopped = true;
      isWaiting = false;
      cancel();
      return running;
    },
  };
}

/** How often an instance that does not lead checks whether it does, in milliseconds. */
const leadCheckMs = 1_000;

/**
 * Like `every`, for background work that only the instance that leads does. Runs `work` while `leads()` is true. Otherwise runs
 * `follow` at least once a second, so that the work begins soon after the instance leads.
 */
export function everyWhileLeading(
  clock: Parameters<typeof every>[0],
  leads: () => boolean,
  periodMs: () => number,
  work: () => unknown,
  follow: () => unknown = () => {},
): Repetition {
  return every(
    clock,
    () => (leads() ? periodMs() : Math.min(periodMs(), leadCheckMs)),
    () => (leads() ? work() : follow()),
  );
}

/**
 * Runs `work` with a signal that is aborted after `ms` milliseconds, or when `stopped` is. Rejects with the reason of the
 * signal if it is aborted before `work` ends, also where `work` ignores it.
 */
export async function withTimeout<T>(
  clock: Pick<Clock, 'after'>,
  { ms, reason, stopped }: { readonly ms: number; readonly reason: Error; readonly stopped?: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  const cancel = clock.after(ms, () => timeout.abort(reason));
  const signal = stopped === undefined ? timeout.signal : AbortSignal.any([stopped, timeout.signal]);
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted.promise, work(signal)]);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', abort);
    cancel();
  }
}

/** Resolves after `ms` milliseconds, or as soon as `signal` is aborted. */
export function sleep(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  const wake = () => {
    cancel();
    resolve();
  };
  if (signal?.aborted) wake();
  else signal?.addEventListener('abort', wake, { once: true });
  return promise.finally(() => signal?.removeEventListener('abort', wake));
}

/** How long to wait before a further attempt: twice as long after each failure. */
export function backoffMs(
  failures: number,
  { firstMs, longestMs }: { firstMs: number; longestMs: number },
): number {
  return Math.min(longestMs, firstMs * 2 ** Math.max(0, failures - 1));
}

const msPerUnit = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The milliseconds of a duration such as 90s, 15m, 24h or 7d; NaN for any other text. */
export function durationMs(text: string): number {
  const [, count, unit] = /^(\d{1,7})([smhd])$/.exec(text) ?? [];
  return Number(count) * msPerUnit[unit as keyof typeof msPerUnit];
}
