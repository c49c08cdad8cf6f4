/**
 * Preloaded into `artseal serve` by NODE_OPTIONS: the thread of the store fails as FAILING_THREAD says when it files an artwork
 * by the author 'Nobody'.
 */
import { isMainThread, parentPort } from 'node:worker_threads';

const ways: Record<string, () => void> = {
  THROW: () => {
    throw new Error('the thread was made to fail');
  },
  EXIT: () => process.exit(7),
  MEMORY: () => {
    const kept: object[] = [];
    for (;;) kept.push({ kept: kept.length });
  },
};

if (!isMainThread) {
  parentPort?.on('message', ({ units = [] }) => {
    const isArmed = units.some(({ effect }: { effect?: { artwork?: { author: string } } }) => {
      return effect?.artwork?.author === 'Nobody';
    });
    if (isArmed) ways[process.env.FAILING_THREAD ?? '']?.();
  });
}
