import type { Clock } from '../domain/clock.ts';
import type { Logger } from '../lib/log.ts';
import { every } from '../lib/timing.ts';

/** A condition for the server to be ready. */
export interface ReadinessPart {
  /** In lower-case letters: both APIs show it to everybody, and it is a label of a metric. */
  readonly name: string;
  /** Whether everybody may read the fault. */
  readonly isPublic?: boolean;
  /**
   * Returns the fault in words for the operator; undefined if there is none. Unauthenticated callers can trigger it at any
   * rate: a part whose check needs the disk caches its result.
   */
  findFault(): string | undefined | Promise<string | undefined>;
}

/** The fault of a part. */
export interface PartFault {
  readonly part: string;
  /** In words for the operator. Callers do not see it unless it is public. */
  readonly fault: string;
  readonly isPublic?: boolean;
}

/** The check period in milliseconds: that of common orchestrators. */
const checkEveryMs = 10_000;
/** The period while a part fails, so that calls return soon after it works. */
const checkFailingEveryMs = 1_000;

/** Whether the server is ready. */
export type Readiness = ReturnType<typeof createReadiness>;

/** Creates readiness from its parts. It logs each change once. */
export function createReadiness(parts: readonly ReadinessPart[], clock: Clock, log: Logger) {
  const listeners = new Set<() => void>();
  let failing = '';
  /** The number of checks begun, and the newest of those that have ended. */
  let begun = 0;
  let newest = 0;

  /** Checks every part. Returns the faults in the order of the parts, none if the server is ready. Never rejects. */
  async function check(): Promise<readonly PartFault[]> {
    begun += 1;
    const number = begun;
    const looked = await Promise.all(parts.map(faultOf));
    const faults = looked.filter((fault) => fault !== undefined);
    // A check that took longer than one that began later is out of date.
    if (number > newest) {
      newest = number;
      report(faults);
    }
    return faults;
  }

  function report(faults: readonly PartFault[]): void {
    const now = faults.map(({ part }) => part).join(', ');
    if (now === failing) return;
    failing = now;
    if (now === '') log.info('ready again');
    else log.warn({ faults }, `not ready: ${now}`);
    for (const listener of [...listeners]) listener();
  }

  const loop = every(clock, () => (failing === '' ? checkEveryMs : checkFailingEveryMs), check);

  return {
    /** The names of all parts. */
    parts: parts.map(({ name }) => name),
    check,
    /** Calls back when a check finds that other parts fail than before. Returns a function that ends this. */
    onChange: (listener: () => void): (() => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Checks now and then periodically, so that changes are logged although nobody asks. Resolves after the first check. */
    start: loop.start,
    stop: () => void loop.stop(),
  };
}

async function faultOf(part: ReadinessPart): Promise<PartFault | undefined> {
  try {
    const fault = await part.findFault();
    if (fault === undefined) return undefined;
    return { part: part.name, fault, ...(part.isPublic && { isPublic: true }) };
  } catch (error) {
    return { part: part.name, fault: `it could not be checked: ${error}` };
  }
}
