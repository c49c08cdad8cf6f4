import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import { errorOf, post, refuseOtherTime, textOfNote, withTimeout } from './outgoing.ts';
import type { Publication, PublishedCheckpoint } from './publication.ts';
import { makeQuery, nonceBytes, readReply } from './time-stamp.ts';

/** An authority for time stamps, and how often it is asked. */
export interface TimeStampTerms {
  readonly url: string;
  readonly everyMs: number;
  /** Certificates in PEM of which one has to vouch for the authority; undefined to take any. */
  readonly authorities: string | undefined;
}

/** How the authority is asked, in milliseconds. */
export const timeStampLimits = {
  answerMs: 10_000,
  /** After a failure it is asked again so much later, or when it would be asked anyway if that is sooner. */
  retryMs: 60_000,
  /** How long it is waited for a checkpoint at a time. */
  growthMs: 60_000,
  /** And how soon again, where it could not be waited for. */
  againMs: 1_000,
} as const;

/** What time stamps are asked for with. */
export interface TimeStampingDependencies {
  readonly terms: TimeStampTerms;
  readonly publication: Publication;
  readonly execute: Execute;
  /** So many random bytes. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Has checkpoints stamped by an authority, in the background. */
export interface TimeStamping {
  /** Begins nothing more; resolves when what was under way is over. */
  stop(): Promise<void>;
}

/** Has the newest checkpoint stamped at once, and from then on in each period in which the log grew. Logs each change. */
export function startTimeStamping(dependencies: TimeStampingDependencies): TimeStamping {
  const { terms, publication, execute, randomBytes, clock, log } = dependencies;
  const stopping = new AbortController();
  const { signal: stopped } = stopping;
  const whenStopped = new Promise<undefined>((resolve) => {
    stopped.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  let fault: string | undefined;

  async function stamp(checkpoint: PublishedCheckpoint): Promise<void> {
    const { size, note } = checkpoint;
    const text = textOfNote(note);
    const nonce = randomBytes(nonceBytes);
    const body = await makeQuery(text, nonce);
    const query = { contentType: 'application/timestamp-query', body };
    const { token, atMs } = await withTimeout(clock, timeStampLimits.answerMs, stopped, async (signal) => {
      const answer = await post(terms.url, query, signal);
      if (answer.status !== 200) throw new Error(errorOf(answer));
      return readReply(answer.body, { text, nonce, authorities: terms.authorities });
    });
    refuseOtherTime('the time of its time stamp', atMs, clock.nowMs());
    const publishedAtS = Math.floor(clock.nowMs() / 1_000);
    await execute({ kind: 'KeepTimeStamp', size, note, publishedAtS, timeStamp: token });
  }

  /** Whether it is stamped. */
  async function attempt(checkpoint: PublishedCheckpoint): Promise<boolean> {
    try {
      if (!(await isStamped(checkpoint))) await stamp(checkpoint);
      if (fault !== undefined) log.info({ url: terms.url }, 'the evidence log is time stamped again');
      fault = undefined;
      return true;
    } catch (error) {
      const why = (error as Error).message;
      if (!stopped.aborted && why !== fault)
        log.error({ url: terms.url, why }, 'the evidence log is not time stamped; it is tried again');
      fault = why;
      return false;
    }
  }

  /** Resolves after so many milliseconds, or when it is stopped. */
  async function pause(ms: number): Promise<void> {
    const passed = Promise.withResolvers<void>();
    const cancel = clock.after(ms, passed.resolve);
    await Promise.race([passed.promise, whenStopped]);
    cancel();
  }

  /** Whether a checkpoint is covered by a stamp of an earlier process. */
  async function isStamped({ size }: PublishedCheckpoint): Promise<boolean> {
    return (await execute({ kind: 'FindTimeStamp', leafIndex: size - 1 })) !== undefined;
  }

  async function run(): Promise<void> {
    let stampedSize = 0;
    while (!stopped.aborted) {
      const grown = publication.covering(stampedSize, timeStampLimits.growthMs);
      const checkpoint = await Promise.race([grown, whenStopped]);
      if (checkpoint === undefined) {
        await pause(timeStampLimits.againMs);
        continue;
      }
      const isDone = await attempt(checkpoint);
      if (isDone) stampedSize = checkpoint.size;
      await pause(isDone ? terms.everyMs : Math.min(terms.everyMs, timeStampLimits.retryMs));
    }
  }

  const underWay = run();
  return {
    stop: () => {
      stopping.abort(new Error('The service stops.'));
      return underWay;
    },
  };
}
