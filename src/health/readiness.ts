import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';

/** One of the things without which the process is not ready to take calls. */
export interface ReadinessPart {
  /** In lower-case letters: the doors tell it to anybody, and metrics have it as a label. */
  readonly name: string;
  /** Whether anybody may read what is wrong. */
  readonly isPublic?: boolean;
  /**
   * What is wrong, in words for the operator; undefined if nothing is. It is asked as often as strangers like: a part whose
   * look costs more than memory keeps what it found for a while.
   */
  findFault(): string | undefined | Promise<string | undefined>;
}

/** What is wrong with a part. */
export interface PartFault {
  readonly part: string;
  /** In words for the operator, and not for callers unless it is public. */
  readonly fault: string;
  readonly isPublic?: boolean;
}

/** Whether the process is ready to take calls. */
export interface Readiness {
  /** The names of all parts. */
  readonly parts: readonly string[];
  /** Asks every part: what is wrong, in the order of the parts; nothing if the process is ready. Never rejects. */
  check(): Promise<readonly PartFault[]>;
  /** Calls back when a check has found that other parts fail than before. The returned function ends that. */
  onChange(listener: () => void): () => void;
  /** Checks now and then regularly, so that a change is logged and told although nobody asks; resolves after the first. */
  start(): Promise<void>;
  /** Ends what `start` began. */
  stop(): void;
}

/** How often it is checked regularly, in milliseconds: as often as orchestrators ask. */
const checkEveryMs = 10_000;
/** The same while a part fails: nobody may ask then, and calls are to come again soon after it works. */
const checkFailingEveryMs = 1_000;

/** Makes readiness of its parts. Each change is logged once. */
export function createReadiness(parts: readonly ReadinessPart[], clock: Clock, log: Logger): Readiness {
  const listeners = new Set<() => void>();
  let failing = '';
  /** Checks begun, and the last of them that was taken notice of. */
  let begun = 0;
  let noticed = 0;
  let isStopped = false;
  let cancel = () => {};

  async function check(): Promise<readonly PartFault[]> {
    begun += 1;
    const place = begun;
    const looked = await Promise.all(parts.map(faultOf));
    const faults = looked.filter((fault) => fault !== undefined);
    // One that began earlier and took longer tells of an earlier time.
    if (place > noticed) {
      noticed = place;
      notice(faults);
    }
    return faults;
  }

  function notice(faults: readonly PartFault[]): void {
    const now = faults.map(({ part }) => part).join(', ');
    if (now === failing) return;
    failing = now;
    if (now === '') log.info('ready again');
    else log.warn({ faults }, `not ready: ${now}`);
    for (const listener of [...listeners]) listener();
  }

  async function checkRegularly(): Promise<void> {
    await check();
    const afterMs = failing === '' ? checkEveryMs : checkFailingEveryMs;
    if (!isStopped) cancel = clock.after(afterMs, checkRegularly);
  }

  return {
    parts: parts.map(({ name }) => name),
    check,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    start: checkRegularly,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}

async function faultOf(part: ReadinessPart): Promise<PartFault | undefined> {
  try {
    const fault = await part.findFault();
    if (fault === undefined) return undefined;
    return { part: part.name, fault, ...(part.isPublic && { isPublic: true }) };
  } catch (error) {
    return { part: part.name, fault: `it could not be looked at: ${error}` };
  }
}
