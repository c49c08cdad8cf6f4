import type { Clock } from '../../domain/clock.ts';

/** The most bytes that are read of an answer of a witness or an authority: theirs have some hundred to some thousand. */
const answerBytesMax = 65_536;

/** An answer to a request. */
export interface Answer {
  readonly status: number;
  readonly body: Buffer<ArrayBuffer>;
}

/** What is sent. */
export interface Outgoing {
  readonly contentType: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** Sends something by POST, and follows no redirect. Rejects where the answer does not come, or is longer than theirs are. */
export async function post(
  url: string,
  { contentType, body }: Outgoing,
  signal: AbortSignal,
): Promise<Answer> {
  const headers = { 'content-type': contentType };
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > answerBytesMax) throw new Error(`it answered more than ${answerBytesMax} bytes`);
    parts.push(part);
  }
  return { status: response.status, body: Buffer.concat(parts) };
}

/** Why an answer that is not the one that was hoped for is none, for the operator; `meanings` by its status. */
export function errorOf({ status, body }: Answer, meanings: Readonly<Record<number, string>> = {}): string {
  if (status >= 300 && status < 400)
    return `it redirects (${status}), which is not followed: set its new address`;
  const said = body.toString().trim().slice(0, 200);
  return `${meanings[status] ?? 'it refused'} (${status}${said === '' ? '' : `: ${JSON.stringify(said)}`})`;
}

/**
 * Does what can be given up by a signal, for so many milliseconds at most or until `stopped`. Rejects with an Error in words for
 * the operator.
 */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  stopped: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  const forget = clock.after(ms, () => timeout.abort(new Error(`no answer within ${ms / 1_000} seconds`)));
  const signal = AbortSignal.any([stopped, timeout.signal]);
  try {
    return await work(signal);
  } catch (error) {
    throw signal.aborted ? signal.reason : withWords(error);
  } finally {
    forget();
  }
}

/** An error as it came; of fetch its cause, which says what happened. */
function withWords(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (!(error.cause instanceof Error)) return error;
  const { message, code } = error.cause as NodeJS.ErrnoException;
  return new Error(message || code);
}

/** How far the time that somebody else says may be from our own, in milliseconds, both ways. */
const timeDifferenceMaxMs = 300_000;

/** Throws where the time that somebody else tells is not about our own: it is of another day, or one of the clocks is wrong. */
export function refuseOtherTime(what: string, timeMs: number, nowMs: number): void {
  if (Math.abs(timeMs - nowMs) <= timeDifferenceMaxMs) return;
  const side = timeMs < nowMs ? 'behind' : 'ahead of';
  throw new Error(`${what} is more than ${timeDifferenceMaxMs / 1_000} s ${side} the clock of this machine`);
}

/** The text that a note is about: what stands before its first blank line, with the newline. */
export function textOfNote(note: string): string {
  return note.slice(0, note.indexOf('\n\n') + 1);
}
