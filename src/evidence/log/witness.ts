import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { backoffMs } from '../../lib/timing.ts';
import type { Execute } from '../../store/store.ts';
import {
  hashLines,
  isOf,
  readCosignature,
  readNote,
  readSignature,
  readVerifierKey,
  signatureTypes,
  type VerifierKey,
} from '../formats/checkpoint.ts';
import { readDecimal } from '../formats/encoding.ts';
import { checkTime, errorOf, inTime, post, type Response } from './post.ts';
import { type PublishedCheckpoint, withoutCosignatures } from './publication.ts';

/** A witness of the log (C2SP tlog-witness). */
export interface Witness {
  readonly key: VerifierKey;
  /** The submission prefix, without a slash at the end. */
  readonly url: string;
}

/** Reads the verifier key of a witness. Throws an Error if it is not an Ed25519 key for cosignatures. */
export function readWitnessKey(vkey: string): VerifierKey {
  const key = readVerifierKey(vkey);
  if (key.type === signatureTypes.cosignature) return key;
  throw new Error('the verifier key has to be an Ed25519 key for cosignatures (type 4): this one signs logs');
}

/** Limits of requests to witnesses, in milliseconds. */
export const witnessLimits = {
  /** The timeout of a witness, and the longest delay of publication. */
  timeoutMs: 2_000,
  /** The pause after a failure, which doubles with each further one up to the maximum. */
  pauseMs: 1_000,
  pauseMaxMs: 60_000,
} as const;

/** See `createWitnesses`. */
export type Witnesses = ReturnType<typeof createWitnesses>;

interface WitnessDependencies {
  readonly witnesses: readonly Witness[];
  /** How many of them have to cosign each published checkpoint. */
  readonly required: number;
  readonly execute: Execute;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Has the checkpoints of the log cosigned by witnesses, over HTTP. Logs when a witness begins to fail and when it recovers.
 * Calls of `cosign` and `confirm` must not overlap.
 */
export function createWitnesses(dependencies: WitnessDependencies) {
  const { required, clock } = dependencies;
  const stopped = new AbortController();
  const clients = dependencies.witnesses.map((witness) =>
    createWitnessClient(witness, dependencies, stopped.signal),
  );

  function cosignedBy(asked: readonly WitnessClient[], checkpoint: PublishedCheckpoint) {
    const nowMs = clock.monotonicMs();
    const ready = asked.filter((client) => client.pausedUntilMs() <= nowMs);
    return Promise.all(ready.map((client) => client.cosign(checkpoint)));
  }

  return {
    /**
     * Asks all witnesses for cosignatures. Returns the note with those that arrived in time. Rejects with an Error for the
     * operator if they are fewer than required.
     */
    cosign: async (checkpoint: PublishedCheckpoint): Promise<string> => {
      const lines = (await cosignedBy(clients, checkpoint)).filter((line) => line !== undefined);
      if (lines.length < required)
        throw new Error(
          `${lines.length} of ${clients.length} witnesses cosigned it, and ${required} are required`,
        );
      return checkpoint.note + lines.map((line) => `${line}\n`).join('');
    },
    /**
     * Shows a published checkpoint to the witnesses that have not cosigned since the process started, or that report a
     * rollback. Publishes nothing and never rejects.
     */
    confirm: async (checkpoint: PublishedCheckpoint): Promise<void> => {
      const open = clients.filter((client) => !client.hasCosigned());
      if (open.length === 0) return;
      await cosignedBy(open, { ...checkpoint, note: withoutCosignatures(checkpoint) });
    },
    /**
     * Why witnesses report a rollback, in words for the operator: the log does not continue what they cosigned. A report
     * stands until the witness cosigns again.
     */
    rolledBack: (): readonly string[] => clients.flatMap((client) => client.rolledBack() ?? []),
    /** Cancels open requests. */
    stop: () => stopped.abort(new Error('The service stops.')),
  };
}

/** The log does not continue what a witness cosigned. */
class RolledBack extends Error {}

type WitnessClient = ReturnType<typeof createWitnessClient>;

/** What a status means, for the operator. 200 and 409 are handled. */
const meanings: Readonly<Record<number, string>> = {
  400: 'it cannot read the request',
  403: 'it does not know the verifier key of the log: give it what artseal evidence vkey prints',
  404: 'it does not know a log of this name, or its address is another one: give it what artseal evidence vkey prints',
  422: 'it finds that the log does not begin with what it cosigned before',
};

/** The client of one witness, which remembers the size that the witness cosigned last. */
function createWitnessClient(
  { key, url }: Witness,
  { execute, clock, log }: WitnessDependencies,
  stopped: AbortSignal,
) {
  let cosignedSize = 0;
  let failures = 0;
  let pausedUntilMs = Number.NEGATIVE_INFINITY;
  let fault: string | undefined;
  let hasCosigned = false;
  let rolledBack: string | undefined;

  async function request(checkpoint: PublishedCheckpoint, signal: AbortSignal): Promise<string | undefined> {
    let response = await submit(checkpoint, signal);
    if (response.status === 409) {
      const size = readSize(response.body.toString());
      if (size > checkpoint.size) return checkPublished(size, checkpoint.size);
      cosignedSize = size;
      response = await submit(checkpoint, signal);
    }
    if (response.status === 422) throw new RolledBack(errorOf(response, meanings).message);
    if (response.status !== 200) throw errorOf(response, meanings);
    const { line, timeS } = findCosignature(response.body.toString(), checkpoint.note);
    checkTime('the time of its cosignature', timeS * 1_000, clock.nowMs());
    cosignedSize = checkpoint.size;
    return line;
  }

  /** Throws RolledBack if the log has fewer leaves. Otherwise another instance has shown the witness a newer checkpoint. */
  async function checkPublished(cosigned: number, size: number): Promise<undefined> {
    if (cosigned > (await execute({ kind: 'GetTree' })).size) throw aheadOf(size, cosigned);
  }

  async function submit({ size, note }: PublishedCheckpoint, signal: AbortSignal): Promise<Response> {
    const proof = await execute({ kind: 'ProveConsistency', from: cosignedSize, to: size });
    if (proof === undefined) throw aheadOf(size, cosignedSize);
    const body = `old ${cosignedSize}\n${hashLines(proof)}\n${note}`;
    return post(`${url}/add-checkpoint`, 'text/plain; charset=utf-8', body, signal);
  }

  /** Finds the cosignature among the lines of a response. Lines of other keys are ignored. */
  function findCosignature(body: string, note: string): { readonly line: string; readonly timeS: number } {
    for (const line of body.split('\n').filter((each) => each.startsWith(`\u2014 ${key.name} `))) {
      const signature = readSignature(line, 'its response');
      if (!isOf(signature, key)) continue;
      const timeS = readCosignature(signature.signature, readNote(note, 'the checkpoint').text, key);
      if (timeS === undefined) throw new Error('its cosignature of this checkpoint is not valid');
      return { line, timeS };
    }
    throw new Error('its response has no cosignature by its key');
  }

  function fail(error: Error): void {
    const isRolledBack = error instanceof RolledBack;
    const why = error.message;
    if (isRolledBack) [hasCosigned, rolledBack] = [false, `${key.name}: ${why}`];
    failures += 1;
    const { pauseMs: firstMs, pauseMaxMs: longestMs } = witnessLimits;
    pausedUntilMs = clock.monotonicMs() + backoffMs(failures, { firstMs, longestMs });
    const what = isRolledBack
      ? 'a witness finds that the evidence log was rolled back'
      : 'a witness does not cosign the evidence log';
    if (why !== fault) log.error({ witness: key.name, why }, what);
    fault = why;
  }

  function succeed(): void {
    if (fault !== undefined) log.info({ witness: key.name }, 'a witness cosigns the evidence log again');
    [failures, fault, hasCosigned, rolledBack] = [0, undefined, true, undefined];
  }

  return {
    /** By the monotonic clock. */
    pausedUntilMs: () => pausedUntilMs,
    /** Whether it cosigned since the process started, and reported no rollback since. */
    hasCosigned: () => hasCosigned,
    rolledBack: () => rolledBack,
    /** Returns the signature line, without a newline; undefined if there is none. Never rejects. */
    cosign: async (checkpoint: PublishedCheckpoint): Promise<string | undefined> => {
      try {
        const line = await inTime(clock, witnessLimits.timeoutMs, stopped, (signal) =>
          request(checkpoint, signal),
        );
        if (line !== undefined) succeed();
        return line;
      } catch (error) {
        if (!stopped.aborted) fail(error as Error);
        return undefined;
      }
    },
  };
}

/** Reads the tree size in the body of a 409. */
function readSize(body: string): number {
  if (!body.endsWith('\n')) throw new Error('it returned 409 without the size that it cosigned');
  return readDecimal(body.slice(0, -1), 'the size in its 409 response');
}

const aheadOf = (size: number, cosigned: number) =>
  new RolledBack(
    `it has cosigned ${cosigned} leaves, and the log has only ${size}: the database is older than what was signed`,
  );
