import type { LogNames } from '../../store/log-commands.ts';
import type { Store } from '../../store/store.ts';

/** What a log is called where no setting says it: a name that no host has, and no other deployment. */
export function madeUpOrigin({ keyFor }: Pick<Store, 'keyFor'>): string {
  return `artseal.invalid/${Buffer.from(keyFor('log origin')).toString('hex').slice(0, 16)}`;
}

/** The rule for the setting of the origin where a deployment must have it; it names the origin that a log has already. */
export function requiredOrigin({ names, origin }: LogNames): string {
  if (origin === undefined)
    return 'must be set in production, to a name of yours such as log.example.com/artseal: the evidence log keeps it for ever';
  const base = names.find((name) => isNamedAfter(origin, name.origin))?.origin ?? origin;
  return `must be set to ${base} in production: the evidence log has that name`;
}

/** Whether a log has a name, or that of a fork of it: with `/` and a number behind. */
export function isNamedAfter(origin: string, base: string): boolean {
  return origin === base || forkOf(origin, base) !== undefined;
}

/** The name of the next fork of a log: `/2` behind its name for the first one, then `/3`. Itself where no log has it. */
export function nextFork(base: string, taken: readonly string[]): string {
  const numbers = taken.map((origin) => (origin === base ? 1 : (forkOf(origin, base) ?? 0)));
  const last = Math.max(0, ...numbers);
  return last === 0 ? base : `${base}/${last + 1}`;
}

/** Which fork of a log a name is that of. */
function forkOf(origin: string, base: string): number | undefined {
  const suffix = origin.startsWith(`${base}/`) ? origin.slice(base.length + 1) : '';
  return /^[1-9][0-9]{0,5}$/.test(suffix) ? Number(suffix) : undefined;
}
