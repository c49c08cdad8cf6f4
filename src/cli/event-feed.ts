import { setTimeout as wait } from 'node:timers/promises';
import type { RestClient } from '../client/rest.ts';
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
/** The shortest time between two calls of the feed, in milliseconds. They count against the rate of the platform. */
const pollEveryMs = 250;
/** How soon a failed call is repeated, in milliseconds. */
const retryMs = 1_000;

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
  if (response.ok) return JSON.parse(text);
  const failure = failureOf(response, text);
  throw response.status === 429 || response.status >= 500 ? new FeedInterrupted(failure.message) : failure;
}

/** The error of a response: the service's own, or the status of one that something in between sent. */
function failureOf({ status, url }: Response, text: string): Error {
  try {
    const { code, message, requestId } = JSON.parse(text);
    if (code !== undefined) return new Error(`${code}: ${message} (request ${requestId})`);
  } catch {
    // It is no JSON.
  }
  return new Error(`${new URL(url).origin} returned ${status}, and no error of Artseal`);
}
