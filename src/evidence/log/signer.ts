import type { Clock } from '../../domain/clock.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { Logger } from '../../lib/log.ts';
import { every, sleep } from '../../lib/timing.ts';
import type { LogKey, LogState } from '../../store/log-commands.ts';
import { type Execute, leads, type Store } from '../../store/store.ts';
import { checkDatabase, checkLogName, EvidenceLogError, readNewest } from './agreement.ts';
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
  /** As `Store.instances`. */
  readonly instances?: Store['instances'];
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

/** Signs the evidence log as it grows if this instance leads, and publishes the checkpoints of all instances. */
export function createSigner(dependencies: SignerDependencies) {
  const { execute, instances, keyRing, origin, madeUpOrigin, witnesses, awaitsWitnesses, clock, log } =
    dependencies;
  const openKeys = createSigningKeys(keyRing);
  const nowS = () => Math.floor(clock.nowMs() / 1000);
  const checkpoints = createCheckpoints(dependencies, nowS);
  let signing: readonly LogKey[] = [];
  /** Why the last attempt failed; undefined if it did not. */
  let failure: string | undefined;
  let rollback: string | undefined;
  let failures = 0;
  let leaves: number | undefined;

  /** Publishes the newest checkpoint of other instances. Then, if this instance leads and the tree grew, signs and publishes that. */
  async function publish(): Promise<void> {
    const state = await readState();
    const isOutdated = checkpoints.isOutdated(state);
    const current = isOutdated ? await checkpoints.publishNewest(state) : checkpoints.last(state);
    const isLeading = leads({ instances });
    if (isLeading) await endKeys(state, nowS(), execute);
    const tree = await execute({ kind: 'GetTree' });
    leaves = tree.size;
    // Witnesses see an idle log too: a rollback that they report rejects the next filing.
    if (!isLeading || tree.size === current?.size) return current && witnesses?.confirm(current);
    if (signing.length === 0) throw new Error('The evidence log has no key that signs.');
    if (state.origin === undefined) throw new Error('The evidence log has no name.');
    if (!isOutdated) await checkpoints.publishNewest(state);
    const signed = signCheckpoint({ origin: state.origin, ...tree }, openKeys(signing));
    const note = witnesses === undefined ? signed.note : await witnesses.cosign(signed);
    if (!(await checkpoints.publish({ ...signed, note })))
      log.info('another instance has published a checkpoint of the evidence log meanwhile');
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
      [failure, rollback] = [undefined, undefined];
    } catch (error) {
      failures += 1;
      const { reason, kind } = faultOf(error);
      if (kind === 'DATABASE_BEHIND') rollback = reason;
      if (kind !== failure)
        log.error({ reason }, 'no checkpoint of the evidence log can be signed; it is tried again');
      failure = kind;
    }
  }

  const attempts = every(clock, () => signEveryMs, attempt);

  return {
    current: checkpoints.newest,
    covering: checkpoints.covering,
    verifierKeys: (): readonly string[] => signing.map(({ vkey }) => vkey),
    /** What is undefined is not known yet. `publishedAtS` is in Unix seconds; `failures` counts attempts. */
    metrics: () => ({
      leaves,
      publishedLeaves: checkpoints.newest()?.size,
      publishedAtS: checkpoints.publishedAtS(),
      failures,
      rolledBack: witnesses?.rolledBack().length ?? 0,
    }),
    /** Why the database is older than what was published, for the operator; undefined if it is not. */
    rollback: () => rollback,
    /**
     * Names the log and makes its first key if it has none, publishes its newest checkpoint, and then signs whenever the tree
     * grew. Throws EvidenceLogError if what was published and the database do not agree.
     */
    start: async (): Promise<void> => {
      const state = await readState();
      checkLogName(state, origin);
      await checkpoints.publishNewest(state);
      if (state.names.length === 0) {
        const name = origin ?? madeUpOrigin;
        await execute({ kind: 'NameLog', origin: name, key: mintLogKey(name, keyRing, nowS()) });
        // Another instance may have named it first.
        checkLogName(await readState(), origin);
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

/** Retires the keys that do not sign any more. */
async function endKeys({ keys }: LogState, atS: number, execute: Execute): Promise<void> {
  for (const key of keys)
    if (!key.isRetired && hasEnded(key, atS)) await execute({ kind: 'EndLogKey', vkey: key.vkey, atS });
}

/** The reason of an error, and what stays the same until it has another reason. */
function faultOf(error: unknown): { readonly reason: string; readonly kind: string } {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  // The message of a store error is for callers. Its cause says what is damaged or cannot be written.
  const reason = cause instanceof Error ? cause.message : message;
  // The sizes in the message change with each filing. It is logged once all the same.
  return { reason, kind: error instanceof EvidenceLogError ? error.kind : reason };
}

/** The published checkpoints: in the database, in the file of this instance, and in its memory, from which callers get them. */
function createCheckpoints({ execute, instances, file, clock }: SignerDependencies, nowS: () => number) {
  const isShared = instances !== undefined;
  const newest = createNewest(clock);
  let publishedAtS: number | undefined;

  /** The one that this instance published last; undefined if the log was forked since. */
  function last({ origin }: LogState): PublishedCheckpoint | undefined {
    const checkpoint = newest.checkpoint();
    return checkpoint?.origin === origin ? checkpoint : undefined;
  }

  async function keep({ size, note }: PublishedCheckpoint): Promise<boolean> {
    const atS = nowS();
    const isKept = await execute({ kind: 'KeepCheckpoint', size, note, publishedAtS: atS });
    if (isKept) publishedAtS = atS;
    return isKept;
  }

  return {
    newest: newest.checkpoint,
    covering: newest.covering,
    publishedAtS: () => publishedAtS,
    last,
    /** Whether the checkpoint in the database is not the one that this instance published last. */
    isOutdated: (state: LogState): boolean => isShared && state.newest?.note !== last(state)?.note,
    /** Publishes the newest one of all instances. Returns it; undefined if there is none. Throws EvidenceLogError. */
    publishNewest: async (state: LogState): Promise<PublishedCheckpoint | undefined> => {
      const published = { execute, state, file, last: last(state), isShared };
      const found = await readNewest(published);
      publishedAtS = state.newest?.publishedAtS;
      if (found === undefined) return undefined;
      const { checkpoint, inFile } = found;
      // Also if the tree in the database is smaller: other instances then see that they must not sign.
      if (isShared && checkpoint.note !== state.newest?.note) await keep(checkpoint);
      await checkDatabase(published, found);
      if (checkpoint.note !== inFile?.note) await file.write(checkpoint.note);
      if (checkpoint !== published.last) newest.publish(checkpoint);
      return checkpoint;
    },
    /** Publishes a new one. Returns false if another instance has published one with as many leaves or more. */
    publish: async (checkpoint: PublishedCheckpoint): Promise<boolean> => {
      await file.write(checkpoint.note);
      if (!(await keep(checkpoint))) return false;
      newest.publish(checkpoint);
      return true;
    },
  };
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
