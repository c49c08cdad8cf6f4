import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { ApiError } from '../../domain/reason.ts';
import { type KeyRing, SecretNotOpened } from '../../keys/key-ring.ts';
import { replaceFile } from '../../lib/replace-file.ts';
import type { LogVerification as Progress } from '../../store/evidence-commands.ts';
import type { Execute } from '../../store/store.ts';

/** Leaves that are compared in one unit of the store, some milliseconds, for which calls wait. */
const leavesAtOnce = 1_024;

/** How long after a failed look the next one begins, in milliseconds. */
const retryMs = 1_000;

/** How often the mark is written, in milliseconds: after kill -9, what was appended since is compared again. */
const markEveryMs = 3_600_000;

/** The name of the mark's file in the data folder. */
export const markFileName = 'log-verified';

/** What it is sealed for. */
const markContext = 'log-verified';

/** Compares the entries of the evidence log in the database with the signed tree, after each start. */
export interface LogVerification {
  /** Begins; resolves when all is compared, or after so many milliseconds. */
  start(withinMs: number): Promise<void>;
  /** What is wrong with the log, or that it is not compared yet, in words for the operator. */
  findFault(): string | undefined;
  /** Stops, and writes the mark. */
  stop(): Promise<void>;
}

/** What it works with. */
export interface LogVerificationDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What was compared before, as the mark keeps it. */
interface Mark {
  readonly size: number;
  /** Of the tree of that size, hex. */
  readonly root: string;
  readonly saved: string;
}

/**
 * Compares in slices, in the background. A mark in the data folder keeps how far earlier processes got and what the log says
 * of filings up to there; it is sealed with the master key, so that nobody else can write one.
 */
export function createLogVerification(dependencies: LogVerificationDependencies): LogVerification {
  const { execute, keyRing, dataDir, clock, log } = dependencies;
  const file = join(dataDir, markFileName);
  let fault: string | undefined = 'the evidence log is not verified yet';
  let isDone = false;
  let isStopped = false;
  let cancel = () => {};
  let running = Promise.resolve();

  /** What an earlier process left, if it is of this log. */
  async function readMark(): Promise<string | undefined> {
    const sealed = await readFile(file).catch(() => undefined);
    if (sealed === undefined) return undefined;
    try {
      const mark: Mark = JSON.parse(keyRing.open(sealed, markContext).export().toString());
      const roots = await execute({ kind: 'GetRoot', size: mark.size });
      return roots !== undefined && hexOf(roots.root) === mark.root ? mark.saved : undefined;
    } catch (error) {
      // Sealed under a master key that is gone, or damaged: everything is compared.
      if (error instanceof SecretNotOpened) return undefined;
      throw error;
    }
  }

  /** Whether all leaves that were read are those of the tree; says so if not. */
  function isSound({ size, faults }: Progress): boolean {
    const [first] = faults.first;
    fault = first && `${first}; ${faults.count} of ${size} entries are not what was signed`;
    if (fault !== undefined)
      log.error({ faults }, 'the evidence log in the database is not the one that was signed');
    return fault === undefined;
  }

  async function writeMark(): Promise<void> {
    // A mark would hide from the next start what another process appended and is wrong.
    isDone = isSound(await execute({ kind: 'VerifyLog', leaves: leavesAtOnce }));
    if (!isDone) return;
    const { size, saved } = await execute({ kind: 'SaveLogIndex' });
    const roots = await execute({ kind: 'GetRoot', size });
    if (roots === undefined) return;
    const mark: Mark = { size, root: hexOf(roots.root), saved };
    await replaceFile(file, keyRing.seal(JSON.stringify(mark), markContext), 0o600);
  }

  /** Compares what is left. */
  async function compare(): Promise<Progress | undefined> {
    let saved = await readMark();
    while (!isStopped) {
      const progress = await execute({ kind: 'VerifyLog', leaves: leavesAtOnce, saved });
      saved = undefined;
      const { verified, size, faults } = progress;
      if (verified === size) return progress;
      if (faults.count === 0) fault = `${verified} of ${size} entries of the evidence log are verified`;
    }
    return undefined;
  }

  async function run(): Promise<void> {
    try {
      const progress = await compare();
      if (progress === undefined) return;
      isDone = isSound(progress);
      if (isDone) schedule(markEveryMs, mark);
    } catch (error) {
      const isDamaged = error instanceof ApiError && error.reason === 'RECORD_DAMAGED';
      const why = String(error instanceof Error ? ((error.cause as Error)?.message ?? error.message) : error);
      fault = isDamaged ? why : `the evidence log could not be verified: ${why}`;
      log.error({ why }, 'the evidence log could not be verified; it is tried again');
      schedule(retryMs, run);
    }
  }

  async function mark(): Promise<void> {
    // Without it the next start takes longer, and no more.
    await writeMark().catch((error) => log.warn({ err: error }, `${file} cannot be written`));
    if (isDone) schedule(markEveryMs, mark);
  }

  function schedule(afterMs: number, work: () => Promise<void>): void {
    if (isStopped) return;
    cancel = clock.after(afterMs, () => {
      running = work();
    });
  }

  return {
    start: async (withinMs) => {
      const passed = Promise.withResolvers<void>();
      const giveUp = clock.after(withinMs, passed.resolve);
      running = run();
      await Promise.race([running, passed.promise]);
      giveUp();
    },
    findFault: () => fault,
    stop: async () => {
      isStopped = true;
      cancel();
      await running;
      if (isDone) await mark();
    },
  };
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
