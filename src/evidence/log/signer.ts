import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { LogKey, LogState } from '../../store/log-commands.ts';
import type { Execute } from '../../store/store.ts';
import { EvidenceLogError, readAgreed, refuseOtherOrigin } from './agreement.ts';
import { signCheckpoint } from './checkpoint.ts';
import type { CheckpointFile } from './checkpoint-file.ts';
import type { Publication, PublishedCheckpoint } from './publication.ts';
import { createSigningKeys, hasEnded, mintLogKey, signsAt } from './signing-keys.ts';
import { createWaiting } from './waiting.ts';
import type { Witnesses } from './witness.ts';

/** How often it is looked whether the tree grew, in milliseconds: checkpoints are no closer to each other. */
export const signEveryMs = 1_000;

/** Signs what the evidence log grew to, and publishes it. */
export interface Signer extends Publication {
  /**
   * Names the log and makes its first key if it has none, and publishes its newest checkpoint; from then on looks
   * regularly whether the tree grew. Throws EvidenceLogError if what was published and the database do not agree.
   */
  start(): Promise<void>;
  metrics(): SignerMetrics;
  /** Reads at once which keys sign. */
  refresh(): Promise<void>;
  /** Signs what has grown meanwhile, as the last one. */
  stop(): Promise<void>;
}

/** How signing stands. */
export interface SignerMetrics {
  /** Leaves as of the last look; undefined before the first. */
  readonly leaves: number | undefined;
  /** Those that the newest checkpoint covers; undefined if there is none. */
  readonly publishedLeaves: number | undefined;
  /** When it was published, Unix seconds; undefined where that is not known. */
  readonly publishedAtS: number | undefined;
  /** Tries that failed or were refused. */
  readonly failures: number;
  /** How many witnesses find the log rolled back. */
  readonly rolledBack: number;
}

/** What the signer works with. */
export interface SignerDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  /** What the log is to be called, as set; undefined if it is not. */
  readonly origin: string | undefined;
  /** What it is called where that is not set. */
  readonly madeUpOrigin: string;
  readonly file: CheckpointFile;
  /** Has what was signed cosigned before it is published; undefined where nobody is asked to. */
  readonly witnesses?: Pick<Witnesses, 'cosign' | 'confirm' | 'rolledBack'> | undefined;
  /** Whether `start` waits until the witnesses have answered, or were waited for in vain. */
  readonly awaitsWitnesses?: boolean | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createSigner(dependencies: SignerDependencies): Signer {
  const { execute, keyRing, origin, madeUpOrigin, file, witnesses, awaitsWitnesses, clock, log } =
    dependencies;
  const openKeys = createSigningKeys(keyRing);
  const waiting = createWaiting(clock);
  let current: PublishedCheckpoint | undefined;
  let signing: readonly LogKey[] = [];
  let cancel = () => {};
  let isStopped = false;
  let underWay = Promise.resolve();
  /** Why the last attempt failed; undefined if it did not. */
  let failure: string | undefined;
  let failures = 0;
  let leaves: number | undefined;
  let publishedAtS: number | undefined;

  const nowS = () => Math.floor(clock.nowMs() / 1000);

  /** Publishes the tree as it is, if it grew. */
  async function publish(): Promise<void> {
    const state = await readState();
    await endKeys(state);
    const tree = await execute({ kind: 'GetTree' });
    leaves = tree.size;
    // A log that does not grow is shown to witnesses as well: what they find decides about the next filing.
    if (tree.size === current?.size) return witnesses?.confirm(current);
    if (signing.length === 0) throw new Error('The evidence log has no key that signs.');
    await readAgreed({ execute, state, file, last: current });
    const signed = signCheckpoint({ origin: nameOf(state), ...tree }, openKeys(signing));
    const note = witnesses === undefined ? signed.note : await witnesses.cosign(signed);
    await file.write(note);
    const atS = nowS();
    await execute({ kind: 'KeepCheckpoint', size: tree.size, note, publishedAtS: atS });
    current = { ...signed, note };
    publishedAtS = atS;
    waiting.tell(current);
  }

  async function readState(): Promise<LogState> {
    const state = await execute({ kind: 'GetLog' });
    signing = state.keys.filter((key) => signsAt(key, nowS()));
    return state;
  }

  /** Ends the keys whose time is over. */
  async function endKeys({ keys }: LogState): Promise<void> {
    const atS = nowS();
    for (const key of keys)
      if (!key.isRetired && hasEnded(key, atS)) await execute({ kind: 'EndLogKey', vkey: key.vkey, atS });
  }

  /** Names the log, and makes its first key. */
  async function name(as: string): Promise<void> {
    await execute({ kind: 'NameLog', origin: as, key: mintLogKey(as, keyRing, nowS()) });
  }

  async function attempt(): Promise<void> {
    try {
      await publish();
      if (failure !== undefined) log.info('checkpoints of the evidence log are signed again');
      failure = undefined;
    } catch (error) {
      failures += 1;
      const { message, cause } = error instanceof Error ? error : new Error(String(error));
      // The message of an error is for callers; its cause says what is damaged or cannot be written.
      const reason = cause instanceof Error ? cause.message : message;
      // What an error says of sizes changes with each filing, and is said once all the same.
      const kind = error instanceof EvidenceLogError ? error.kind : reason;
      if (kind !== failure)
        log.error({ reason }, 'no checkpoint of the evidence log can be signed; it is tried again');
      failure = kind;
    }
  }

  async function run(): Promise<void> {
    const beganMs = clock.monotonicMs();
    await attempt();
    if (isStopped) return;
    const passedMs = clock.monotonicMs() - beganMs;
    cancel = clock.after(Math.max(0, signEveryMs - passedMs), () => {
      underWay = run();
    });
  }

  return {
    current: () => current,
    covering: (leafIndex, withinMs) =>
      current !== undefined && leafIndex < current.size
        ? Promise.resolve(current)
        : waiting.until(leafIndex, withinMs),
    verifierKeys: () => signing.map(({ vkey }) => vkey),
    metrics: () => ({
      leaves,
      publishedLeaves: current?.size,
      publishedAtS,
      failures,
      rolledBack: witnesses?.rolledBack().length ?? 0,
    }),
    start: async () => {
      const state = await readState();
      refuseOtherOrigin(state, origin);
      current = await readAgreed({ execute, state, file, last: undefined });
      publishedAtS = state.newest?.publishedAtS;
      if (state.names.length === 0) await name(origin ?? madeUpOrigin);
      underWay = run();
      if (witnesses === undefined || awaitsWitnesses) await underWay;
    },
    refresh: async () => {
      await readState();
    },
    stop: async () => {
      cancel();
      isStopped = true;
      await underWay;
      await attempt();
    },
  };
}

/** The name in force. */
function nameOf({ origin }: LogState): string {
  if (origin === undefined) throw new Error('The evidence log has no name.');
  return origin;
}
