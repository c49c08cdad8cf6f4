import type { Message } from '@bufbuild/protobuf';
import { createConcurrencyLimit } from './concurrency-limit.ts';

/** Largest number of open streams: of all tokens together, and of one token. */
export const streamsMax = { all: 200, ofToken: 20 } as const;

/** The open response streams. */
export interface Streams {
  /**
   * Opens a stream. Its first message throws UNAVAILABLE or RATE_LIMITED above the limits. The stream ends when the signal
   * is aborted, even if nobody reads it.
   */
  begin(
    tokenId: string,
    responses: AsyncGenerator<Message, void>,
    signal: AbortSignal,
  ): AsyncIterable<Message>;
  /** How many streams are open. */
  open(): number;
}

export function createStreams(): Streams {
  const limit = createConcurrencyLimit<string>({
    ofAll: streamsMax.all,
    ofEach: streamsMax.ofToken,
    tooMany: `At most ${streamsMax.ofToken} streams at the same time with one token.`,
    full: 'Too many streams are open.',
  });

  async function* limited(
    tokenId: string,
    responses: AsyncGenerator<Message, void>,
  ): AsyncGenerator<Message, void> {
    const leave = limit.enter(tokenId);
    try {
      yield* responses;
    } finally {
      leave();
    }
  }

  return {
    begin: (tokenId, responses, signal) => {
      const stream = limited(tokenId, responses);
      // A client that is gone reads no further message, so the generator would never finish by itself.
      signal.addEventListener('abort', () => void stream.return(), { once: true });
      return stream;
    },
    open: limit.taken,
  };
}
