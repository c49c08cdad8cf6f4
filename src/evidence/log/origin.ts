import type { LogNames } from '../../store/log-commands.ts';
import type { Store } from '../../store/store.ts';

/** Makes the name of a log without a setting: unique to the deployment, and never a host name. */
export function madeUpOrigin({ keyFor }: Pick<Store, 'keyFor'>): string {
  return `artseal.invalid/${Buffer.from(keyFor('log origin')).toString('hex').slice(0, 16)}`;
}

/** Says how the origin has to be set in production: to the name of the log if it has one. */
export function requiredOrigin({ names, origin }: LogNames): string {
  if (origin === undefined)
    return 'must be set in production, to a name of yours such as log.example.com/artseal: the evidence log keeps it for ever';
  const base = names.find((name) => isNamedAfter(origin, name.origin))?.origin ?? origin;
  return `must be set to ${base} in production: the evidence log has that name`;
}

/** Whether a name is `base`, or that of a fork of it: `base/2`, `base/3` and so on. */
export function isNamedAfter(origin: string, base: string): boolean {
  return origin === base || forkOf(origin, base) !== undefined;
}

/** Returns the name of the next fork: `base/2`, then `base/3`; `base` itself if no log has it. */
export function nextFork(base: string, taken: readonly string[]): string {
  const numbers = taken.map((origin) => (origin === base ? 1 : (forkOf(origin, base) ?? 0)));
  const last = Math.max(0, ...numbers);
  return last === 0 ? base : `${base}/${last + 1}`;
}

/** The number of the fork that a name stands for. */
function forkOf(origin: string, base: string): number | undefined {
  const suffix = origin.startsWith(`${base}/`) ? origin.slice(base.length + 1) : '';
  return /^[1-9][0-9]{0,5}$/.test(suffix) ? Number(suffix) : undefined;
}
