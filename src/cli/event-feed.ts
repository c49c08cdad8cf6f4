import { setTimeout as wait } from 'node:timers/promises';
import type { RestClient } from '../client/rest.ts';
import { clientVariables } from '../config/config.ts';
import { newestEventIn } from '../domain/event.ts';

/** An event as the feed returns it. */
export interface FeedEvent {
  readonly id: string;
  readonly sequence: number;
  readonly type: string;
  /** RFC 3339. */
  readonly at: string;
  readonly filingNo?: string;
  readonly escrowId?: string;
  readonly webhookId?: string;
}

/** Sends signed calls. */
type Send = RestClient['send'];

/** How long a call of the feed waits for an event, in seconds. */
const waitS = 30;
/** The shortest time between two calls of the feed, in milliseconds: the platform's own programs need the rest of its rate. */
const pollEveryMs = 1_000;
/** How soon a failed call is repeated, in milliseconds. */
const retryMs = 1_000;

/** How often a call above the rate is sent, and the longest delay before the next time, in seconds. */
const aboveRate = { tries: 10, delayMaxS: 5 } as const;

/** Returns a `send` that repeats a call above the rate of the platform, which its own programs may use up. */
export function withinRate(send: Send): Send {
  return async (...call) => {
    for (let tries = 1; ; tries += 1) {
      const response = await send(...call);
      // The delay for a used up quota is the rest of the month.
      const delayS = Number(response.headers.get('Retry-After'));
      const isFinal = !(delayS <= aboveRate.delayMaxS) || tries === aboveRate.tries;
      if (response.status !== 429 || isFinal) return response;
      await response.body?.cancel();
      await wait(delayS * 1_000);
    }
  };
}

/** The server cannot answer now: the call may be repeated. */
class FeedInterrupted extends Error {}

/** Returns the cursor of the newest event of a platform. */
export async function newestCursor(send: Send): Promise<number> {
  const response = await send('GET', `/api/v1/events?after=${Number.MAX_SAFE_INTEGER}`);
  const text = await response.text();
  const newest = newestEventIn(text);
  if (newest === undefined) throw failureOf(response, text);
  return newest;
}

/**
 * Yields the events of a platform after a cursor, for ever: a page at a time, which is empty if nothing happens for 30 seconds.
 * While the server cannot be reached or is overloaded, it tries again, and prints an error once, and once that it continues. Throws
 * if the first call fails, or the server rejects a call for another reason.
 */
export async function* eventPagesAfter(
  send: Send,
  cursor: number,
  printError: (line: string) => void,
): AsyncGenerator<readonly FeedEvent[]> {
  let after = cursor;
  let isFirst = true;
  let isInterrupted = false;
  for (;;) {
    const calledMs = performance.now();
    try {
      const page = await readPage(send, after);
      if (isInterrupted) printError(`artseal: connected again; events after ${after} follow`);
      [isFirst, isInterrupted] = [false, false];
      yield page.events;
      after = page.next;
      await wait(Math.max(0, pollEveryMs - (performance.now() - calledMs)));
    } catch (error) {
      if (isFirst || !(error instanceof FeedInterrupted)) throw error;
      if (!isInterrupted) printError(`artseal: ${error.message}; trying again`);
      isInterrupted = true;
      await wait(retryMs);
    }
  }
}

/** Throws FeedInterrupted, and an Error for a response that stays the same. */
async function readPage(send: Send, after: number): Promise<{ events: FeedEvent[]; next: number }> {
  const target = `/api/v1/events?after=${after}&waitSeconds=${waitS}`;
  let response: Response;
  let text: string;
  try {
    response = await send('GET', target);
    text = await response.text();
  } catch (error) {
    throw new FeedInterrupted(error instanceof Error ? error.message : String(error));
  }
  const page = response.ok ? parsed(text) : undefined;
  if (Array.isArray(page?.events)) return page;
  const failure = failureOf(response, text);
  throw response.status === 429 || response.status >= 500 ? new FeedInterrupted(failure.message) : failure;
}

/** The error of a response: the service's own, or the status of one that something in between sent. */
function failureOf({ status, url }: Response, text: string): Error {
  const { code, message, requestId } = parsed(text) ?? {};
  if (code !== undefined) return new Error(`${code}: ${message} (request ${requestId})`);
  return new Error(
    `${new URL(url).origin} returned ${status}, but not as Artseal does: check ${clientVariables.url}`,
  );
}

/** Parses JSON; undefined for any other text. */
// biome-ignore lint/suspicious/noExplicitAny: responses have every shape.
function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
