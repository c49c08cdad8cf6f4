import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../domain/clock.ts';
import type { StreamedCall } from './incoming-call.ts';
import { createPlaces } from './places.ts';

/** Streams of answers that are open at the same time: with all tokens, and with one. */
export const streamsMax = { all: 200, ofToken: 20 } as const;

/** How long an answer waits to be taken before its stream is cut off, in milliseconds. */
export const takingMs = 30_000;

/** Streams of answers. */
export interface Streams {
  /**
   * Has answers taken one by one, within the limits of streams: the first of them is refused with UNAVAILABLE or RATE_LIMITED
   * beyond these. An answer that is not taken in `takingMs` has the call cut off. When the signal of the call is aborted the
   * answers end, whether anybody takes them or not.
   */
  begin(
    tokenId: string,
    answers: AsyncGenerator<Message, void>,
    call: Pick<StreamedCall, 'signal' | 'cutOff'>,
  ): AsyncIterable<Message>;
  /** How many are open. */
  open(): number;
}

/** None is open. */
export function createStreams(clock: Pick<Clock, 'after'>): Streams {
  const places = createPlaces<string>({
    ofAll: streamsMax.all,
    ofEach: streamsMax.ofToken,
    tooMany: `At most ${streamsMax.ofToken} streams at the same time with one token.`,
    full: 'Too many streams are open.',
  });

  async function* limited(
    tokenId: string,
    answers: AsyncGenerator<Message, void>,
    cutOff: () => void,
  ): AsyncGenerator<Message, void> {
    const leave = places.enter(tokenId);
    try {
      for await (const answer of answers) {
        const taken = clock.after(takingMs, cutOff);
        try {
          yield answer;
        } finally {
          taken();
        }
      }
    } finally {
      leave();
    }
  }

  return {
    begin: (tokenId, answers, { signal, cutOff }) => {
      const stream = limited(tokenId, answers, cutOff);
      // Whoever is gone takes nothing more, and a stream that waits for that would stay open.
      signal.addEventListener('abort', () => void stream.return(), { once: true });
      return stream;
    },
    open: places.taken,
  };
}
