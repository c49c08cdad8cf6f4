import { setFlagsFromString } from 'node:v8';

/**
 * What Node has to be told on its command line when it serves. SIGUSR1 must not open the inspector to everybody on this
 * machine. The young heap stays small, in MiB for each of its two halves: loading the modules would otherwise leave it
 * large for as long as the process lives. V8 must not put new objects into the old heap because earlier ones lived long:
 * there, an object of a call keeps the whole call in memory until that heap is collected.
 */
export const runtimeFlags = [
  '--disable-sigusr1',
  '--max-semi-space-size=16',
  '--no-allocation-site-pretenuring',
] as const;

/**
 * Has the old heap collected each time that it has doubled: what calls leave there is garbage soon, and Node alone lets it
 * grow to several times as much. Collecting it more often takes calls longer than it saves memory. For a process that has
 * started: while modules are loaded all of it stays.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--heap-growing-percent=100');
}

/**
 * Starts this process anew, in place, with the flags of `runtimeFlags` that it was not given; returns if none is
 * missing. It keeps its process id, words, environment, standard input and outputs, and loses all else: what it had read
 * from a pipe cannot be read again. Flags that were given, on the command line or in NODE_OPTIONS of `env`, stay as they
 * are. Windows cannot replace a process: there the service runs without them.
 */
export function ensureRuntimeFlags(env: NodeJS.ProcessEnv): void {
  const inEnvironment = env.NODE_OPTIONS?.match(/(?<=^|[\s"])--[\w-]+/g) ?? [];
  const given = new Set([...inEnvironment, ...process.execArgv].map(nameOf));
  const missing = runtimeFlags.filter((flag) => !given.has(nameOf(flag)));
  if (missing.length === 0 || process.platform === 'win32') return;
  process.execve?.(process.execPath, [
    process.execPath,
    ...missing,
    ...process.execArgv,
    ...process.argv.slice(1),
  ]);
}

/** The name of a flag without its value, in the one of two spellings that `runtimeFlags` has. */
const nameOf = (flag: string): string => flag.replace(/=.*/s, '').replaceAll('_', '-');
