import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fateUnknown } from '../../src/store/engine/failure.ts';
import { post, prepare } from '../support/filing-load.ts';
import type { IssuedPlatform } from '../support/issued.ts';
import type { SupervisedService } from './supervised-services.ts';

/** The number of clients, each with one filing under way. */
const clients = 8;
/** How long a client waits after an answer and after an error, in milliseconds: fewer calls than the platforms may send. */
const pauseMs = 20;
const retryMs = 100;

/** What clients got. */
export interface Tally {
  /** Filing numbers by Idempotency-Key. */
  readonly answered: Map<string, string>;
  /** Calls that were sent, repeated ones as well. */
  calls: number;
  /** Calls that may or may not have been executed: their response says so, or their connection broke. */
  unknown: number;
  /** Calls of which nothing was stored. */
  unavailable: number;
  /** Other errors. */
  readonly rejected: string[];
  /** When the newest answered call was sent, in milliseconds of `performance.now()`. */
  newestSentMs: number;
}

/**
 * Files by several clients until it is stopped. Each repeats a filing under the same Idempotency-Key, in turn at each service,
 * until it is answered. The signal, and an error other than UNAVAILABLE, end them at once.
 */
export function fileWithRetries(
  services: readonly SupervisedService[],
  platforms: readonly IssuedPlatform[],
  signal: AbortSignal,
) {
  const tally: Tally = {
    ...{ answered: new Map(), calls: 0, unknown: 0, unavailable: 0, rejected: [], newestSentMs: 0 },
  };
  let isStopped = false;
  let filings = 0;
  let turn = 0;

  /** Sends a filing once. Returns whether it was answered. */
  async function attempt(agent: Agent, filing: number): Promise<boolean> {
    turn += 1;
    const url = services[turn % services.length]?.running()?.publicUrl;
    const [prepared] = prepare(platforms, 1, filing);
    if (url === undefined || prepared === undefined) return false;
    tally.calls += 1;
    const sentMs = performance.now();
    const answer = await post(agent, url, prepared);
    if (answer === undefined || answer.text.includes(fateUnknown)) tally.unknown += 1;
    else if (answer.status === 200) {
      tally.answered.set(prepared.idempotencyKey, answer.json.filingNo);
      tally.newestSentMs = Math.max(tally.newestSentMs, sentMs);
      return true;
    } else if (answer.status === 503) tally.unavailable += 1;
    else tally.rejected.push(answer.text);
    return false;
  }

  async function work(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const isOver = () => signal.aborted || tally.rejected.length > 0;
    while (!isStopped && !isOver()) {
      filings += 1;
      const filing = filings;
      while (!(await attempt(agent, filing)) && !isOver()) await delay(retryMs);
      await delay(pauseMs);
    }
    agent.destroy();
  }

  const ended = Promise.all(Array.from({ length: clients }, work));
  return {
    tally,
    /** Begins no further filings, and waits for those under way. */
    stop: async (): Promise<void> => {
      isStopped = true;
      await ended;
    },
  };
}
