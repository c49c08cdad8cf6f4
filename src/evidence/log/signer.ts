import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import { every, sleep } from '../../lib/timing.ts';
import type { LogKey, LogState } from '../../store/log-commands.ts';
import type { Execute } from '../../store/store.ts';
import { checkLogName, EvidenceLogError, readAgreed } from './agreement.ts';
import type { CheckpointFile, PublishedCheckpoint } from './publication.ts';
import { createSigningKeys, hasEnded, mintLogKey, signCheckpoint, signsAt } from './signing-keys.ts';
import type { Witnesses } from './witness.ts';

/** How often the signer looks whether the tree grew, in milliseconds: the shortest time between checkpoints. */
const signEveryMs = 1_000;

/** See `createSigner`. */
export type Signer = ReturnType<typeof createSigner>;

/**
 * What is published of the evidence log: callers see nothing newer than the current checkpoint. Its verifier keys are those that
 * sign now, the newest first.
 */
export type Publication = Pick<Signer, 'current' | 'covering' | 'verifierKeys'>;

interface SignerDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  /** The name of the log, as set. */
  readonly origin: string | undefined;
  /** Its name if none is set. */
  readonly madeUpOrigin: string;
  readonly file: CheckpointFile;
  /** They cosign each checkpoint before it is published. */
  readonly witnesses?: Pick<Witnesses, 'cosign' | 'confirm' | 'rolledBack'> | undefined;
  /** Whether `start` waits for the witnesses, up to their timeout. */
  readonly awaitsWitnesses?: boolean | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Signs the evidence log as it grows, and publishes it. */
export function createSigner(dependencies: SignerDependencies) {
  const { execute, keyRing, origin, madeUpOrigin, file, witnesses, awaitsWitnesses, clock, log } =
    dependencies;
  const openKeys = createSigningKeys(keyRing);
  const newest = createNewest(clock);
  let signing: readonly LogKey[] = [];
  /** Why the last attempt failed; undefined if it did not. */
  let failure: string | undefined;
  let failures = 0;
  let leaves: number | undefined;
  let publishedAtS: number | undefined;

  const nowS = () => Math.floor(clock.nowMs() / 1000);

  /** Publishes the tree if it grew. */
  async function publish(): Promise<void> {
    const state = await readState();
    for (const key of state.keys)
      if (!key.isRetired && hasEnded(key, nowS()))
        await execute({ kind: 'EndLogKey', vkey: key.vkey, atS: nowS() });
    const tree = await execute({ kind: 'GetTree' });
    leaves = tree.size;
    // Witnesses see an idle log too: a rollback that they report rejects the next filing.
    const current = newest.checkpoint();
    if (tree.size === current?.size) return witnesses?.confirm(current);
    if (signing.length === 0) throw new Error('The evidence log has no key that signs.');
    if (state.origin === undefined) throw new Error('The evidence log has no name.');
    await readAgreed({ execute, state, file, last: current });
    const signed = signCheckpoint({ origin: state.origin, ...tree }, openKeys(signing));
    const note = witnesses === undefined ? signed.note : await witnesses.cosign(signed);
    await file.write(note);
    const atS = nowS();
    await execute({ kind: 'KeepCheckpoint', size: tree.size, note, publishedAtS: atS });
    publishedAtS = atS;
    newest.publish({ ...signed, note });
  }

  async function readState(): Promise<LogState> {
    const state = await execute({ kind: 'GetLog' });
    signing = state.keys.filter((key) => signsAt(key, nowS()));
    return state;
  }

  async function attempt(): Promise<void> {
    try {
      await publish();
      if (failure !== undefined) log.info('checkpoints of the evidence log are signed again');
      failure = undefined;
    } catch (error) {
      failures += 1;
      const { reason, kind } = faultOf(error);
      if (kind !== failure)
        log.error({ reason }, 'no checkpoint of the evidence log can be signed; it is tried again');
      failure = kind;
    }
  }

  const attempts = every(clock, () => signEveryMs, attempt);

  return {
    current: newest.checkpoint,
    covering: newest.covering,
    verifierKeys: (): readonly string[] => signing.map(({ vkey }) => vkey),
    /** What is undefined is not known yet. `publishedAtS` is in Unix seconds; `failures` counts attempts. */
    metrics: () => ({
      leaves,
      publishedLeaves: newest.checkpoint()?.size,
      publishedAtS,
      failures,
      rolledBack: witnesses?.rolledBack().length ?? 0,
    }),
    /**
     * Names the log and makes its first key if it has none, publishes its newest checkpoint, and then signs whenever the tree
     * grew. Throws EvidenceLogError if what was published and the database do not agree.
     */
    start: async (): Promise<void> => {
      const state = await readState();
      checkLogName(state, origin);
      const agreed = await readAgreed({ execute, state, file, last: undefined });
      if (agreed !== undefined) newest.publish(agreed);
      publishedAtS = state.newest?.publishedAtS;
      if (state.names.length === 0) {
        const name = origin ?? madeUpOrigin;
        await execute({ kind: 'NameLog', origin: name, key: mintLogKey(name, keyRing, nowS()) });
      }
      const attempted = attempts.start();
      if (witnesses === undefined || awaitsWitnesses) await attempted;
    },
    /** Reads now which keys sign. */
    refresh: async (): Promise<void> => void (await readState()),
    /** Signs what was added since the last checkpoint, and stops. */
    stop: (): Promise<void> => attempts.stop().then(attempt),
  };
}

/** The reason of an error, and what stays the same until it has another reason. */
function faultOf(error: unknown): { readonly reason: string; readonly kind: string } {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  // The message of a store error is for callers. Its cause says what is damaged or cannot be written.
  const reason = cause instanceof Error ? cause.message : message;
  // The sizes in the message change with each filing. It is logged once all the same.
  return { reason, kind: error instanceof EvidenceLogError ? error.kind : reason };
}

/** Holds the newest checkpoint, and the calls that wait for a later one. */
function createNewest(clock: Pick<Clock, 'after'>) {
  const waiting = new Set<() => void>();
  let newest: PublishedCheckpoint | undefined;
  return {
    /** The newest checkpoint; undefined before the first. */
    checkpoint: () => newest,
    publish: (checkpoint: PublishedCheckpoint): void => {
      newest = checkpoint;
      for (const look of waiting) look();
    },
    /** Waits up to `withinMs` milliseconds for a checkpoint that covers a leaf. Resolves to undefined if none comes. */
    covering: async (leafIndex: number, withinMs: number): Promise<PublishedCheckpoint | undefined> => {
      const found = new AbortController();
      const look = () => newest !== undefined && leafIndex < newest.size && found.abort();
      waiting.add(look);
      look();
      await sleep(clock, withinMs, found.signal);
      waiting.delete(look);
      return found.signal.aborted ? newest : undefined;
    },
  };
}
