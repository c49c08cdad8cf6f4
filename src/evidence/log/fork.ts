import { copyFile, open, readFile, rm } from 'node:fs/promises';
import type { Actor } from '../../domain/audit-entry.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { LogState } from '../../store/log-commands.ts';
import type { Execute } from '../../store/store.ts';
import { EvidenceLogError, readAgreed, refuseOtherOrigin } from './agreement.ts';
import { tryReadCheckpoint, withoutCosignatures } from './checkpoint.ts';
import type { CheckpointFile } from './checkpoint-file.ts';
import { isNamedAfter, nextFork } from './origin.ts';
import type { PublishedCheckpoint } from './publication.ts';
import { mintLogKey } from './signing-keys.ts';

/** What a fork works with. */
export interface ForkDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  readonly file: CheckpointFile;
  /** What the log is to be called, as set; undefined if it is not. */
  readonly origin: string | undefined;
  /** What it is called where that is not set. */
  readonly madeUpOrigin: string;
}

/** A fork that is to be made. */
export interface Fork {
  /** Why the log cannot go on as it is, in words for the operator. */
  readonly why: string;
  /** Whether answered filings are missing, and nothing keeps their numbers from being given out again, as a restoration does. */
  readonly givesNumbersAgain: boolean;
  /** The last checkpoint of it that is known. */
  readonly previous: PublishedCheckpoint | undefined;
  /** What the new log is to be called. */
  readonly origin: string;
  /** Where the file with the old checkpoint is kept; undefined if there is none. */
  readonly keptAs: string | undefined;
}

/** A note for a leaf: entries of a log are 65,535 bytes at most. */
const previousMax = 16_384;

/** Looks whether the log has to be forked; undefined if what was published and the database agree. Nothing is changed. */
export async function planFork(dependencies: ForkDependencies): Promise<Fork | undefined> {
  const { execute, file, origin, madeUpOrigin } = dependencies;
  const state = await execute({ kind: 'GetLog' });
  const apiError = await errorOf(dependencies, state);
  if (apiError === undefined) return undefined;
  const restoration = await execute({ kind: 'FindRestoration' });
  const isRestored = restoration !== undefined && restoration.servedAtS === undefined;
  const written = await file.read();
  const note = written && tryReadCheckpoint(written.note);
  // Where this log has a name, that of another deployment is no checkpoint of it.
  const inFile = note !== undefined && isOfThis(note.origin, state, origin) ? note : undefined;
  const kept = state.newest && tryReadCheckpoint(state.newest.note);
  const previous = kept !== undefined && kept.size > (inFile?.size ?? -1) ? kept : inFile;
  const names = [...state.names.map((name) => name.origin), ...(inFile === undefined ? [] : [inFile.origin])];
  const base = origin ?? state.names[0]?.origin ?? madeUpOrigin;
  const old = note?.origin ?? state.origin ?? 'unreadable';
  return {
    why: apiError.message,
    givesNumbersAgain: apiError.kind === 'DATABASE_BEHIND' && !isRestored,
    previous,
    origin: nextFork(base, names),
    keptAs: written && `${file.path}.${old.replaceAll(/[^A-Za-z0-9.-]+/g, '_')}.old`,
  };
}

/** Whether a log of that name can be the one of this database, or a fork of it that the database does not know yet. */
function isOfThis(origin: string, { names }: LogState, set: string | undefined): boolean {
  const own = [...names.map((name) => name.origin), ...(set === undefined ? [] : [set])];
  return names.length === 0 || own.some((name) => isNamedAfter(origin, name));
}

async function errorOf(
  { execute, file, origin }: ForkDependencies,
  state: LogState,
): Promise<EvidenceLogError | undefined> {
  try {
    refuseOtherOrigin(state, origin);
    await readAgreed({ execute, state, file, last: undefined });
    return undefined;
  } catch (error) {
    if (error instanceof EvidenceLogError) return error;
    throw error;
  }
}

/**
 * Makes a fork as planned: the log goes on under another name with a new key, its verifier key is given. Nobody serves it
 * meanwhile. Cut off before its end, the next start goes on with the new log, or it is to be made again.
 */
export async function makeFork(
  { execute, keyRing, file }: ForkDependencies,
  { previous, origin, keptAs }: Fork,
  by: Actor,
): Promise<string> {
  if (keptAs !== undefined) await keep(file.path, keptAs);
  const note = previous && withoutCosignatures(previous);
  const key = mintLogKey(origin, keyRing, by.atS);
  const named = note !== undefined && note.length <= previousMax ? note : '';
  await execute({ kind: 'ForkLog', by, origin, key, previous: named });
  // The next start writes its own.
  await rm(file.path, { force: true });
  return key.vkey;
}

/** Copies a file, and has the copy on disk. Throws Error if another one is there under that name. */
async function keep(path: string, as: string): Promise<void> {
  const there = await readFile(as).catch(() => undefined);
  if (there !== undefined && !there.equals(await readFile(path)))
    throw new Error(`${as} is there, from another fork: move it elsewhere first.`);
  await copyFile(path, as);
  const copy = await open(as, 'r+');
  try {
    await copy.sync();
  } finally {
    await copy.close();
  }
}
