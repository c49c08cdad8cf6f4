import type { Progress } from '../operations/backup/backup-error.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import type { Terminal } from './command.ts';

/** How often progress is shown at most, in milliseconds. */
const showEveryMs = 100;
/** What ends a command from the terminal or from its supervisor. */
const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs work that tells its progress, which is shown if somebody watches. SIGINT and SIGTERM end it where it tells its
 * progress next, so that it can remove what is not finished.
 */
export async function withProgress<T>(
  { showProgress }: Terminal,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  let stoppedBy: string | undefined;
  let shownAtMs = Number.NEGATIVE_INFINITY;
  const stop = (signal: string) => {
    stoppedBy = signal;
  };
  for (const signal of signals) process.on(signal, stop);
  try {
    return await work((step, done, total) => {
      if (stoppedBy !== undefined) throw new Error(`${stoppedBy} came; what was not finished is removed`);
      const atMs = performance.now();
      if (showProgress === undefined || atMs - shownAtMs < showEveryMs) return;
      shownAtMs = atMs;
      showProgress(total === 0 ? step : `${step}: ${megabytes(done)} of ${megabytes(total)}`);
    });
  } finally {
    showProgress?.('');
    for (const signal of signals) process.off(signal, stop);
  }
}
