import type { Message } from '@bufbuild/protobuf';
import { createConcurrencyLimit } from './concurrency-limit.ts';

/** Streams of answers that are open at the same time: with all tokens, and with one. */
export const streamsMax = { all: 200, ofToken: 20 } as const;

/** Streams of answers. */
export interface Streams {
  /**
   * Has answers taken one by one, within the limits of streams: the first of them is refused with UNAVAILABLE or RATE_LIMITED
   * beyond these. When the signal is aborted the answers end, whether anybody takes them or not.
   */
  begin(tokenId: string, answers: AsyncGenerator<Message, void>, signal: AbortSignal): AsyncIterable<Message>;
  /** How many are open. */
  open(): number;
}

/** None is open. */
export function createStreams(): Streams {
  const places = createConcurrencyLimit<string>({
    ofAll: streamsMax.all,
    ofEach: streamsMax.ofToken,
    tooMany: `At most ${streamsMax.ofToken} streams at the same time with one token.`,
    full: 'Too many streams are open.',
  });

  async function* limited(
    tokenId: string,
    answers: AsyncGenerator<Message, void>,
  ): AsyncGenerator<Message, void> {
    const leave = places.enter(tokenId);
    try {
      yield* answers;
    } finally {
      leave();
    }
  }

  return {
    begin: (tokenId, answers, signal) => {
      const stream = limited(tokenId, answers);
      // Whoever is gone takes nothing more, and a stream that waits for that would stay open.
      signal.addEventListener('abort', () => void stream.return(), { once: true });
      return stream;
    },
    open: places.taken,
  };
}
