import type { Progress } from '../operations/backup/manifest.ts';
import { megabytes } from '../store/sqlite/durable-files.ts';
import type { Terminal, Words } from './command.ts';

/** How often progress is shown at most, in milliseconds. */
const showEveryMs = 100;
/** Signals of the terminal and of supervisors that end a command. */
const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs work and shows its progress: with `--progress` as lines of JSON, otherwise only on a terminal. SIGINT and SIGTERM abort the
 * signal that `work` receives, and make its next report of progress throw, so that it removes unfinished files. `amount` shows a
 * number on a terminal.
 */
export async function withProgress<T>(
  words: Words,
  { print, showProgress }: Terminal,
  work: (progress: Progress, signal: AbortSignal) => Promise<T>,
  amount: (done: number) => string = megabytes,
): Promise<T> {
  let stoppedBy: string | undefined;
  let shownAtMs = Number.NEGATIVE_INFINITY;
  const stopping = new AbortController();
  const stop = (signal: string) => {
    stoppedBy = signal;
    stopping.abort();
  };
  const stopped = () => new Error(`stopped by ${stoppedBy}; unfinished files are removed`);
  const progress: Progress = (step, done, total) => {
    if (stoppedBy !== undefined) throw stopped();
    const atMs = performance.now();
    if (atMs - shownAtMs < showEveryMs) return;
    shownAtMs = atMs;
    if (words.has('progress')) print(JSON.stringify({ progress: { step, done, total } }));
    else showProgress?.(total === 0 ? step : `${step}: ${amount(done)} of ${amount(total)}`);
  };
  for (const signal of signals) process.on(signal, stop);
  try {
    return await work(progress, stopping.signal);
  } catch (error) {
    throw stoppedBy === undefined ? error : stopped();
  } finally {
    showProgress?.('');
    for (const signal of signals) process.off(signal, stop);
  }
}
