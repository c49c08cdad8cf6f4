import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import { withoutCosignatures } from './checkpoint.ts';
import { type Cosignature, findCosignature, type WitnessKey } from './cosignature.ts';
import { type Answer, errorOf, post, refuseOtherTime, textOfNote, withTimeout } from './outgoing.ts';
import type { PublishedCheckpoint } from './publication.ts';

/** A witness of the log: who it is, and where checkpoints are submitted to it (C2SP tlog-witness). */
export interface Witness {
  readonly key: WitnessKey;
  /** The submission prefix, without a slash at the end. */
  readonly url: string;
}

/** How witnesses are asked, in milliseconds. */
export const witnessLimits = {
  /** How long a witness may take for a checkpoint. Publication waits that long at most. */
  answerMs: 2_000,
  /** After a failure a witness is left alone for this long, and twice as long after each further one, up to the maximum. */
  restMs: 1_000,
  restMaxMs: 60_000,
} as const;

/** Has the checkpoints of the log cosigned. */
export interface Witnesses {
  /**
   * Asks all witnesses for their cosignatures: the note with those that came in time. Rejects with an Error for the operator if
   * they are fewer than required. One call at a time.
   */
  cosign(checkpoint: PublishedCheckpoint): Promise<string>;
  /**
   * Shows a published checkpoint to each witness that has not judged the log since the process started, and to each that finds it
   * rolled back. Publishes nothing. Never rejects. Not while `cosign` runs.
   */
  confirm(checkpoint: PublishedCheckpoint): Promise<void>;
  /**
   * What witnesses say that find the log rolled back, in words for the operator: the log is not a continuation of what they
   * cosigned. A witness says so until it cosigns again.
   */
  rolledBack(): readonly string[];
  /** Waits for no answer any more. */
  stop(): void;
}

/** What witnesses are asked with. */
export interface WitnessDependencies {
  readonly witnesses: readonly Witness[];
  /** How many of them have to cosign what is published. */
  readonly required: number;
  readonly execute: Execute;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Asks witnesses by HTTP. Logs each change of what a witness does. */
export function createWitnesses(dependencies: WitnessDependencies): Witnesses {
  const { required, clock } = dependencies;
  const stopped = new AbortController();
  const askers = dependencies.witnesses.map((witness) => createAsker(witness, dependencies, stopped.signal));

  function ask(checkpoint: PublishedCheckpoint, asked: readonly Asker[]) {
    const nowMs = clock.monotonicMs();
    const awake = asked.filter((asker) => asker.restsUntilMs() <= nowMs);
    return Promise.all(awake.map((asker) => asker.ask(checkpoint)));
  }

  return {
    cosign: async (checkpoint) => {
      const answers = await ask(checkpoint, askers);
      const lines = answers.filter((answer) => answer !== undefined).map(({ line }) => `${line}\n`);
      if (lines.length < required)
        throw new Error(
          `${lines.length} of ${askers.length} witnesses cosigned it, and ${required} are required`,
        );
      return checkpoint.note + lines.join('');
    },
    confirm: async (checkpoint) => {
      const open = askers.filter((asker) => asker.verdict() !== 'CONTINUED');
      if (open.length > 0) await ask({ ...checkpoint, note: withoutCosignatures(checkpoint) }, open);
    },
    rolledBack: () =>
      askers
        .map((asker) => asker.verdict())
        .filter((verdict) => verdict !== undefined && verdict !== 'CONTINUED')
        .map(({ rolledBack }) => rolledBack),
    stop: () => stopped.abort(new Error('The service stops.')),
  };
}

/** What a witness says of the log: that it continues what the witness cosigned, or why it does not. */
type Verdict = 'CONTINUED' | { readonly rolledBack: string };

/** The log is not a continuation of what a witness cosigned. */
class RolledBack extends Error {
  override name = 'RolledBack';
}

/** Asks one witness, and remembers what it cosigned last. */
interface Asker {
  /** By the monotonic clock. */
  restsUntilMs(): number;
  /** The last one since the process started; undefined if there was none. */
  verdict(): Verdict | undefined;
  /** Undefined if it gave none. Never rejects. */
  ask(checkpoint: PublishedCheckpoint): Promise<Cosignature | undefined>;
}

/** What a witness means by a status, besides 200 and 409, for the operator. */
const meanings: Readonly<Record<number, string>> = {
  400: 'it cannot read what was sent',
  403: 'it does not know the verifier key of the log: give it what artseal evidence vkey prints',
  404: 'it does not know a log of this name, or its address is another one: give it what artseal evidence vkey prints',
  422: 'it finds that the log does not begin with what it cosigned before',
};

function createAsker(
  { key, url }: Witness,
  { execute, clock, log }: WitnessDependencies,
  stopped: AbortSignal,
): Asker {
  let cosignedSize = 0;
  let failures = 0;
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  let fault: string | undefined;
  let verdict: Verdict | undefined;

  async function cosigned(checkpoint: PublishedCheckpoint, signal: AbortSignal): Promise<Cosignature> {
    let answer = await submit(checkpoint, signal);
    if (answer.status === 409) {
      cosignedSize = readSize(answer.body.toString(), checkpoint.size);
      answer = await submit(checkpoint, signal);
    }
    if (answer.status === 422) throw new RolledBack(errorOf(answer, meanings));
    if (answer.status !== 200) throw new Error(errorOf(answer, meanings));
    const cosignature = findCosignature(answer.body.toString(), key, textOfNote(checkpoint.note));
    if (cosignature === undefined) throw new Error('it answered without a cosignature of its key');
    refuseOtherTime('the time of its cosignature', cosignature.timeS * 1_000, clock.nowMs());
    cosignedSize = checkpoint.size;
    return cosignature;
  }

  async function submit({ size, note }: PublishedCheckpoint, signal: AbortSignal): Promise<Answer> {
    const proof = await execute({ kind: 'ProveConsistency', from: cosignedSize, to: size });
    if (proof === undefined) throw rolledBackTo(size, cosignedSize);
    const lines = proof.map((hash) => `${Buffer.from(hash).toString('base64')}\n`).join('');
    const body = `old ${cosignedSize}\n${lines}\n${note}`;
    return post(`${url}/add-checkpoint`, { contentType: 'text/plain; charset=utf-8', body }, signal);
  }

  function failed(error: Error): void {
    const why = error.message;
    if (error instanceof RolledBack) verdict = { rolledBack: `${key.name}: ${why}` };
    restsUntilMs =
      clock.monotonicMs() + Math.min(witnessLimits.restMs * 2 ** failures, witnessLimits.restMaxMs);
    failures = Math.min(failures + 1, 10);
    const what =
      error instanceof RolledBack
        ? 'a witness finds that the evidence log was rolled back'
        : 'a witness does not cosign the evidence log';
    if (why !== fault) log.error({ witness: key.name, why }, what);
    fault = why;
  }

  function succeeded(): void {
    if (fault !== undefined) log.info({ witness: key.name }, 'a witness cosigns the evidence log again');
    [failures, fault, verdict] = [0, undefined, 'CONTINUED'];
  }

  return {
    restsUntilMs: () => restsUntilMs,
    verdict: () => verdict,
    ask: async (checkpoint) => {
      try {
        const cosignature = await withTimeout(clock, witnessLimits.answerMs, stopped, (signal) =>
          cosigned(checkpoint, signal),
        );
        succeeded();
        return cosignature;
      } catch (error) {
        if (!stopped.aborted) failed(error as Error);
        return undefined;
      }
    },
  };
}

/** The tree size in an answer 409; not more than what there is to be cosigned. */
function readSize(body: string, size: number): number {
  const told = /^(0|[1-9]\d{0,15})\n$/.test(body) ? Number(body) : Number.NaN;
  if (!Number.isSafeInteger(told)) throw new Error('it answered 409 without the size that it cosigned');
  if (told > size) throw rolledBackTo(size, told);
  return told;
}

const rolledBackTo = (size: number, cosigned: number) =>
  new RolledBack(
    `it has cosigned ${cosigned} leaves, and the log has only ${size}: the database is older than what was signed`,
  );
