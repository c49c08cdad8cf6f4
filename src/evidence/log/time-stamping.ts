import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { everyWhileLeading } from '../../lib/timing.ts';
import type { Execute } from '../../store/store.ts';
import { readNote } from '../formats/checkpoint.ts';
import { checkTime, errorOf, inTime, post } from './post.ts';
import type { PublishedCheckpoint } from './publication.ts';
import type { Publication } from './signer.ts';

/** A time-stamping authority (RFC 3161), and how often it stamps. */
interface TimeStampTerms {
  readonly url: string;
  readonly everyMs: number;
  /** Trusted certificates in PEM; undefined accepts any certificate. */
  readonly authorities: string | undefined;
}

/** Limits of requests to the authority, in milliseconds. */
export const timeStampLimits = {
  timeoutMs: 10_000,
  /** The pause after a failure; the period of the stamps if that is shorter. */
  retryMs: 60_000,
  /** How often to look for a new checkpoint once the period has passed. */
  lookMs: 1_000,
} as const;

/** Bytes of a nonce. */
export const nonceBytes = 16;

interface TimeStampingDependencies {
  readonly terms: TimeStampTerms;
  readonly publication: Pick<Publication, 'current'>;
  readonly execute: Execute;
  /** Whether this instance stamps. Of several, only the one that leads does. */
  readonly leads: () => boolean;
  /** Returns so many random bytes. */
  readonly randomBytes: (count: number) => Uint8Array;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Checks the certificates of a PEM file, which it returns. Throws an Error if there is none, or one cannot be read. */
export function parseAuthorities(pem: string): string {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error('has no certificate in PEM');
  for (const one of found) new X509Certificate(one);
  return pem;
}

/**
 * Stamps the newest checkpoint now, and later once in each period in which the log grew. Logs when stamping begins to fail
 * and when it recovers. `stop` resolves when no request is open.
 */
export function startTimeStamping(dependencies: TimeStampingDependencies): { stop(): Promise<void> } {
  const { terms, publication, execute, leads, randomBytes, clock, log } = dependencies;
  const stopping = new AbortController();
  const { signal: stopped } = stopping;
  let fault: string | undefined;
  let stampedSize = 0;
  let pauseMs: number = timeStampLimits.lookMs;

  async function stamp({ size, note }: PublishedCheckpoint): Promise<void> {
    // These libraries are large, and most deployments do not need them.
    const { makeQuery, readReply } = await import('../formats/time-stamp.ts');
    const { text } = readNote(note, 'the checkpoint');
    const nonce = randomBytes(nonceBytes);
    const { token, timeMs } = await inTime(clock, timeStampLimits.timeoutMs, stopped, async (signal) => {
      const query = makeQuery(text, nonce);
      const response = await post(terms.url, 'application/timestamp-query', query, signal);
      if (response.status !== 200) throw errorOf(response);
      return readReply(response.body, { text, nonce, authorities: terms.authorities });
    });
    checkTime('the time of its time stamp', timeMs, clock.nowMs());
    const publishedAtS = Math.floor(clock.nowMs() / 1_000);
    await execute({ kind: 'KeepTimeStamp', size, note, publishedAtS, timeStamp: token });
  }

  async function stampNewest(): Promise<void> {
    pauseMs = timeStampLimits.lookMs;
    const checkpoint = publication.current();
    if (checkpoint === undefined || checkpoint.size <= stampedSize) return;
    try {
      // An earlier process may have stamped a checkpoint that covers this one.
      const stamped = await execute({ kind: 'FindTimeStamp', leafIndex: checkpoint.size - 1 });
      if (stamped === undefined) await stamp(checkpoint);
      if (fault !== undefined) log.info({ url: terms.url }, 'the evidence log is time stamped again');
      fault = undefined;
      stampedSize = checkpoint.size;
      pauseMs = terms.everyMs;
    } catch (error) {
      const why = (error as Error).message;
      if (!stopped.aborted && why !== fault)
        log.error({ url: terms.url, why }, 'the evidence log is not time stamped; it is tried again');
      fault = why;
      pauseMs = Math.min(terms.everyMs, timeStampLimits.retryMs);
    }
  }

  const stamping = everyWhileLeading(clock, leads, () => pauseMs, stampNewest);
  void stamping.start();
  return {
    stop: () => {
      stopping.abort(new Error('The service stops.'));
      return stamping.stop();
    },
  };
}
