/** The channel between the main thread and the thread that is weighed. */
export const weighingChannel = 'weigh';

/** Returns the live memory of this thread, in bytes: heap, buffers and strings. */
export function weighHeap(): number {
  globalThis.gc?.();
  // The second collection frees buffers whose owners the first one found dead.
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
