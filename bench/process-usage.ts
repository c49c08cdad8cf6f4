import { readdirSync, readFileSync } from 'node:fs';

type CpuTimes = ReturnType<typeof cpuTimes>;

/** See `residentMb`. */
export type ResidentMb = ReturnType<typeof residentMb>;

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const ticksPerS = 100;

/** The processor time of a process so far, in seconds; NaN and empty if the system does not report it. */
export function cpuTimes(pid: number) {
  const threads = threadIds(pid);
  return {
    /** Of all threads, those that have ended included. */
    totalS: cpuS(`/proc/${pid}/stat`),
    /** Of each thread, by its id. */
    threadsS: new Map(threads.map((id) => [id, cpuS(`/proc/${pid}/task/${id}/stat`)])),
  };
}

/** What was used from one reading to the next, by all threads and by the one that used most; in seconds. */
export function cpuBetween(before: CpuTimes, after: CpuTimes): { totalS: number; busiestS: number } {
  const used = Array.from(after.threadsS, ([id, seconds]) => seconds - (before.threadsS.get(id) ?? 0));
  return {
    totalS: after.totalS - before.totalS,
    busiestS: used.length === 0 ? Number.NaN : Math.max(...used),
  };
}

/** The processor time of two processes. */
export const sumOf = (one: CpuTimes, other: CpuTimes): CpuTimes => ({
  totalS: one.totalS + other.totalS,
  threadsS: new Map([...one.threadsS, ...other.threadsS]),
});

/** The resident memory of a process now and at its highest, in MB; NaN if the system does not report it. */
export function residentMb(pid: number) {
  const status = read(`/proc/${pid}/status`);
  const mb = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
  return { now: mb('VmRSS'), peak: mb('VmHWM') };
}

function threadIds(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function cpuS(file: string): number {
  // The second field is a name that may hold spaces; utime and stime are the 12th and 13th after it.
  const fields = read(file)
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerS;
}

/** A file that may have gone with its process or thread; empty then. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
