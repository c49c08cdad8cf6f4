import type { Clock } from '../../domain/clock.ts';
import { withTimeout } from '../../lib/timing.ts';

/** Requests to witnesses and time-stamping authorities. Errors are in words for the operator. */

/** Bytes of a response body at most. Real ones have some hundred to some thousand. */
const bodyBytesMax = 65_536;

/** A response. */
export interface Response {
  readonly status: number;
  readonly body: Buffer<ArrayBuffer>;
}

/** Sends a POST request and follows no redirect. Rejects if the request fails or the response is too long. */
export async function post(
  url: string,
  contentType: string,
  body: string | Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<Response> {
  const headers = { 'content-type': contentType };
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > bodyBytesMax) throw new Error(`its response has more than ${bodyBytesMax} bytes`);
    parts.push(part);
  }
  return { status: response.status, body: Buffer.concat(parts) };
}

/** Says why a response is an error; `meanings` by status. */
export function errorOf({ status, body }: Response, meanings: Readonly<Record<number, string>> = {}): Error {
  if (status >= 300 && status < 400)
    return new Error(`it redirects (${status}), which is not followed: set its new address`);
  const text = body.toString().trim().slice(0, 200);
  const detail = text === '' ? '' : `: ${JSON.stringify(text)}`;
  return new Error(`${meanings[status] ?? 'it returned an error'} (${status}${detail})`);
}

/** Runs `work`, for `ms` milliseconds at most or until `stopped`. Rejects with an Error in words for the operator. */
export async function inTime<T>(
  clock: Clock,
  ms: number,
  stopped: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const reason = new Error(`no response within ${ms / 1_000} seconds`);
  try {
    return await withTimeout(clock, { ms, reason, stopped }, work);
  } catch (error) {
    // The error of fetch itself is `fetch failed`.
    const { cause } = error as Error;
    if (!(cause instanceof Error)) throw error;
    throw new Error(cause.message || (cause as NodeJS.ErrnoException).code);
  }
}

/** How far the time of a witness or an authority may be from our own, in milliseconds. */
const timeDifferenceMaxMs = 300_000;

/** Throws an Error if the time of a witness or an authority differs too much from our own: one of the clocks is wrong. */
export function checkTime(what: string, timeMs: number, nowMs: number): void {
  if (Math.abs(timeMs - nowMs) <= timeDifferenceMaxMs) return;
  const side = timeMs < nowMs ? 'earlier' : 'later';
  throw new Error(
    `${what} is more than ${timeDifferenceMaxMs / 1_000} s ${side} than the clock of this machine`,
  );
}
