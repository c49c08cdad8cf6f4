/** The channel over which the threads of a service are asked what is alive in them. */
export const weighingChannel = 'weigh';

/** What is alive in the heap of this thread and in the buffers and strings beside it, in bytes. */
export function weighHeap(): number {
  globalThis.gc?.();
  // Memory beside the heap is let go of by what the first collection found.
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
