import { isMainThread, parentPort } from 'node:worker_threads';
import type { WorkerRequest } from '../../../src/store/sqlite/thread.ts';

/**
 * Preloaded into `artseal serve` by NODE_OPTIONS: the thread of the store fails as FAILING_THREAD says when it receives the
 * author 'Nobody'.
 */

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
  parentPort?.on('message', (request: WorkerRequest) => {
    const isArmed = request.kind === 'EXECUTE' && request.requests.parts.includes('Nobody');
    if (isArmed) ways[process.env.FAILING_THREAD ?? '']?.();
  });
}
