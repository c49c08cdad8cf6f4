import { readdirSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Metrics of the process. */
export interface ProcessMetrics {
  readonly residentBytes: number;
  /** CPU time of all threads since it started. */
  readonly cpuSeconds: number;
  /** Unix seconds. */
  readonly startedAtS: number;
  /** Files and sockets; undefined if the system does not report them. */
  readonly openFiles: number | undefined;
  /** The delay of timers of the main thread since the last read, in seconds. */
  readonly eventLoopDelay: { readonly p99: number; readonly max: number };
}

/** The sampling period of the event loop delay, in milliseconds. The timer is Node's own and runs no JavaScript. */
const sampleEveryMs = 20;

/** Starts to watch this process, until `stop`. */
export function createProcessWatch() {
  const delays = monitorEventLoopDelay({ resolution: sampleEveryMs });
  delays.enable();
  // A sample is the time between two runs of its timer.
  const secondsBeyond = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - sampleEveryMs / 1e3);
  return {
    read: (): ProcessMetrics => {
      const eventLoopDelay = {
        p99: secondsBeyond(delays.percentile(99)),
        max: delays.count === 0 ? 0 : secondsBeyond(delays.max),
      };
      delays.reset();
      const { user, system } = process.cpuUsage();
      return {
        residentBytes: process.memoryUsage.rss(),
        cpuSeconds: (user + system) / 1e6,
        startedAtS: performance.timeOrigin / 1e3,
        openFiles: openFiles(),
        eventLoopDelay,
      };
    },
    stop: () => delays.disable(),
  };
}

function openFiles(): number | undefined {
  try {
    // The folder itself is open while it is read.
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return undefined;
  }
}
