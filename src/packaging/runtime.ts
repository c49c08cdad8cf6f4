import { setFlagsFromString } from 'node:v8';

/**
 * The flags of Node that `artseal serve` needs:
 * - SIGUSR1 must not open the inspector, which every user of the machine could reach.
 * - The young heap stays small (MiB for each half). Loading the modules would otherwise make it large for good.
 * - V8 must not allocate new objects in the old heap, where one object keeps a whole call until that heap is collected.
 */
export const runtimeFlags = [
  '--disable-sigusr1',
  '--max-semi-space-size=16',
  '--no-allocation-site-pretenuring',
] as const;

/**
 * Collects the old heap each time that it has grown by 70 percent. By default Node lets it grow to several times its size, although
 * most of what calls leave there is garbage. Call it after the start: objects of loaded modules stay.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--heap-growing-percent=70');
}

/**
 * Restarts this process in place with the missing flags of `runtimeFlags`; returns if none is missing. The process keeps
 * its id, arguments, environment and standard streams. Call it before anything is read from a pipe. Flags on the command
 * line or in NODE_OPTIONS of `env` have precedence. Windows cannot replace a process: there the service runs without them.
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

/** The name of a flag without its value, spelled with hyphens. */
const nameOf = (flag: string): string => flag.replace(/=.*/s, '').replaceAll('_', '-');
