import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import { ApiError } from '../../domain/reason.ts';
import { type KeyRing, SecretNotOpened } from '../../keys/key-ring.ts';
import type { Logger } from '../../lib/log.ts';
import { replaceFile } from '../../lib/replace-file.ts';
import { every, sleep } from '../../lib/timing.ts';
import type { LogVerification as Progress } from '../../store/evidence-commands.ts';
import type { Execute } from '../../store/store.ts';
import { hex } from '../formats/encoding.ts';

/** Leaves of one store request, which takes some milliseconds: calls wait for it. */
const leavesAtOnce = 1_024;

/** The pause after a failure, in milliseconds. */
const retryMs = 1_000;

/** How often the mark is written, in milliseconds. After a crash, leaves that were appended since are verified again. */
const markEveryMs = 3_600_000;

/** The name of the mark's file in the data folder, and what the encrypted mark is bound to. */
export const markFileName = 'log-verified';

/**
 * Makes the store read the entries of the evidence log that it has not read yet, in slices. Otherwise the next write reads
 * all of them at once, and nothing else runs meanwhile.
 */
export async function readLog(execute: Execute): Promise<void> {
  let left = true;
  while (left) {
    const { verified, size } = await execute({ kind: 'VerifyLog', leaves: leavesAtOnce });
    left = verified < size;
  }
}

/** See `createLogVerification`. */
export type LogVerification = ReturnType<typeof createLogVerification>;

interface LogVerificationDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What earlier processes verified. */
interface Mark {
  readonly size: number;
  /** The root of the tree of that size, hex. */
  readonly root: string;
  readonly saved: string;
}

/**
 * Verifies the entries of the evidence log in the database against the signed tree, in slices. A mark in the data folder holds how far earlier processes got, and what the log says of filings up to
 * there. It is encrypted with the master key, so that nobody who can only write files forges one.
 */
export function createLogVerification(dependencies: LogVerificationDependencies) {
  const { execute, keyRing, dataDir, clock, log } = dependencies;
  const file = join(dataDir, markFileName);
  /** Undefined once all is verified. */
  let fault: string | undefined = 'the evidence log is not verified yet';
  let isStopped = false;
  const verifying = every(
    clock,
    () => (fault === undefined ? markEveryMs : retryMs),
    () => (fault === undefined ? tryWriteMark() : verify()),
  );

  /** Reads the mark of an earlier process; undefined if it is not of this log. */
  async function readMark(): Promise<string | undefined> {
    const sealed = await readFile(file).catch(() => undefined);
    if (sealed === undefined) return undefined;
    try {
      const mark: Mark = JSON.parse(keyRing.open(sealed, markFileName).export().toString());
      const roots = await execute({ kind: 'GetRoot', size: mark.size });
      return roots !== undefined && hex(roots.root) === mark.root ? mark.saved : undefined;
    } catch (error) {
      // The mark is damaged, or its master key is gone.
      if (error instanceof SecretNotOpened) return undefined;
      throw error;
    }
  }

  /** Takes the result of a verification of all leaves. Nothing is verified any more once a fault was found. */
  function conclude({ size, faults }: Progress): void {
    const [first] = faults.first;
    fault = first && `${first}; ${faults.count} of ${size} entries are not what was signed`;
    if (fault === undefined) return;
    log.error({ faults }, 'the evidence log in the database is not the one that was signed');
    void verifying.stop();
  }

  async function writeMark(): Promise<void> {
    // Somebody may have changed the file, which a mark would hide from the next start.
    conclude(await execute({ kind: 'VerifyLog', leaves: leavesAtOnce }));
    if (fault !== undefined) return;
    const { size, saved } = await execute({ kind: 'SaveLogIndex' });
    const roots = await execute({ kind: 'GetRoot', size });
    if (roots === undefined) return;
    const mark: Mark = { size, root: hex(roots.root), saved };
    await replaceFile(file, keyRing.seal(JSON.stringify(mark), markFileName), 0o600);
  }

  /** Without the mark the next start takes longer. */
  const tryWriteMark = () =>
    writeMark().catch((error) => log.warn({ err: error }, `${file} cannot be written`));

  async function verify(): Promise<void> {
    try {
      let saved = await readMark();
      while (!isStopped) {
        const progress = await execute({ kind: 'VerifyLog', leaves: leavesAtOnce, saved });
        saved = undefined;
        const { verified, size, faults } = progress;
        if (verified === size) return conclude(progress);
        if (faults.count === 0) fault = `${verified} of ${size} entries of the evidence log are verified`;
      }
    } catch (error) {
      const isDamaged = error instanceof ApiError && error.reason === 'RECORD_DAMAGED';
      const why = String(error instanceof Error ? ((error.cause as Error)?.message ?? error.message) : error);
      fault = isDamaged ? why : `the evidence log could not be verified: ${why}`;
      log.error({ why }, 'the evidence log could not be verified; it is tried again');
    }
  }

  return {
    /** Begins to verify in the background. Resolves when all is verified, or after `withinMs` milliseconds. */
    start: async (withinMs: number): Promise<void> => {
      const verified = new AbortController();
      void verifying.start().then(() => verified.abort());
      await sleep(clock, withinMs, verified.signal);
    },
    /** Says what is wrong with the log, or that it is not verified yet, in words for the operator. */
    findFault: () => fault,
    /** Stops, and writes the mark. */
    stop: async (): Promise<void> => {
      isStopped = true;
      await verifying.stop();
      if (fault === undefined) await tryWriteMark();
    },
  };
}
