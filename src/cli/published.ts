import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createPublishedLog, type PublishedLog, type ReadPublished } from '../evidence/verifier/index.ts';
import { UsageError } from './command.ts';
import { errorOfLength, readBounded, readStart } from './files.ts';

/** Attempts of a request, and the pause after the first one, which doubles. */
const attemptsMax = 5;
const firstPauseMs = 100;
/** The longest pause that Retry-After may set. */
const retryAfterMsMax = 30_000;
/** The timeout of a request with its body. */
const requestTimeoutMs = 30_000;

/**
 * Opens a log by its prefix, such as `https://host/log`, or by a folder with its files. Throws UsageError for anything else.
 * Requests that fail are repeated; after the last attempt the promises of the log reject with an Error.
 */
export function openPublished(place: string, word: string): PublishedLog {
  if (/^https?:\/\//.test(place)) return createPublishedLog(httpReader(prefixOf(place, word)));
  if (!statSync(place, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(
      `needs ${word}: the http:// or https:// address of a log, or a folder with its files, not '${place}'`,
    );
  }
  return createPublishedLog(async (path, bytesMax) => {
    const file = join(place, path);
    if (!existsSync(file)) return undefined;
    return readBounded(file, bytesMax);
  });
}

function prefixOf(place: string, word: string): string {
  const url = URL.canParse(place) ? new URL(place) : undefined;
  if (url === undefined || url.search + url.hash + url.username + url.password !== '') {
    throw new UsageError(
      `needs ${word} to be only the address of a log, such as https://registry.example/log, not '${place}'`,
    );
  }
  return url.href.replace(/\/+$/, '');
}

/** A request that may succeed later, after the pause of its Retry-After. */
class Unreachable extends Error {
  readonly pauseMs: number;

  constructor(message: string, { retryAfter, cause }: { retryAfter?: string | null; cause?: unknown }) {
    super(message, { cause });
    this.pauseMs = Math.min(retryAfterMsMax, 1000 * (Number(retryAfter) || 0));
  }
}

function httpReader(prefix: string): ReadPublished {
  return async (path, bytesMax) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await get(`${prefix}/${path}`, bytesMax);
      } catch (error) {
        if (!(error instanceof Unreachable) || attempt === attemptsMax) throw error;
        await setTimeout(Math.max(error.pauseMs, firstPauseMs * 2 ** (attempt - 1)));
      }
    }
  };
}

async function get(url: string, bytesMax: number): Promise<Uint8Array | undefined> {
  let response: Response;
  let bytes: Uint8Array | undefined;
  try {
    response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(requestTimeoutMs) });
    if (response.status === 200) bytes = await readStart(response.body ?? [], bytesMax);
    else await response.body?.cancel();
  } catch (error) {
    throw new Unreachable(`${url} could not be fetched`, { cause: (error as Error).cause ?? error });
  }
  if (bytes !== undefined && bytes.length > bytesMax) throw errorOfLength(url, bytesMax);
  if (response.status === 404 || response.status === 200) return bytes;
  const message = `${url} returned HTTP ${response.status}`;
  if (response.status === 429 || response.status >= 500)
    throw new Unreachable(message, { retryAfter: response.headers.get('retry-after') });
  const isRedirect = response.status >= 300 && response.status < 400;
  throw new Error(isRedirect ? `${message}, and redirects are not followed` : message);
}
