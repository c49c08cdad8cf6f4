import type { AnyResponse } from '../listen/any-http.ts';

/**
 * Calls of a caller that only read and are carried out at the same time. Enough to fill batches at the store: more would
 * not be faster.
 */
const readsAtOnceMax = 64;

/** The turns of the calls that only read, for each caller. They bound the memory of calls whose clients are gone. */
export interface ReadQueue {
  /**
   * Resolves when a call may be carried out, with what ends its turn: when its work is over, even if its client has gone
   * before. Until its turn a call takes about 6 KB of memory, from then on 25. Never resolves if the response is closed
   * before.
   */
  take(caller: string, response: AnyResponse): Promise<() => void>;
}

/** The calls of a caller. It stays without calls: a map that changes with each call is costly, see `remove` in open-calls.ts. */
interface Line {
  underWay: number;
  /** The oldest first. */
  readonly waiting: Set<() => void>;
}

/** No call is under way. */
export function createReadQueue(): ReadQueue {
  const lines = new Map<string, Line>();

  function lineOf(caller: string): Line {
    const known = lines.get(caller);
    if (known !== undefined) return known;
    const line = { underWay: 0, waiting: new Set<() => void>() };
    lines.set(caller, line);
    return line;
  }

  function end(line: Line): void {
    line.underWay -= 1;
    const [next] = line.waiting;
    next?.();
  }

  return {
    take: (caller, response) => {
      const line = lineOf(caller);
      const { promise, resolve } = Promise.withResolvers<() => void>();
      const begin = () => {
        line.waiting.delete(begin);
        line.underWay += 1;
        let hasEnded = false;
        resolve(() => {
          if (!hasEnded) end(line);
          hasEnded = true;
        });
      };
      if (line.underWay < readsAtOnceMax) begin();
      else {
        line.waiting.add(begin);
        response.once('close', () => line.waiting.delete(begin));
      }
      return promise;
    },
  };
}
