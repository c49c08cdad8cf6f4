import { readFile, rm } from 'node:fs/promises';
import type { Actor } from '../../domain/audit-entry.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import { replaceFile } from '../../lib/replace-file.ts';
import type { LogState } from '../../store/log-commands.ts';
import type { Execute } from '../../store/store.ts';
import { checkLogName, EvidenceLogError, type Published, readAgreed } from './agreement.ts';
import {
  type CheckpointFile,
  isNamedAfter,
  nextFork,
  type PublishedCheckpoint,
  tryReadCheckpoint,
  withoutCosignatures,
} from './publication.ts';
import { mintLogKey } from './signing-keys.ts';

interface ForkDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  readonly file: CheckpointFile;
  /** The name of the log, as set. */
  readonly origin: string | undefined;
  /** Its name if none is set. */
  readonly madeUpOrigin: string;
  readonly isShared: Published['isShared'];
}

/** A planned fork. */
export interface Fork {
  /** Why the log cannot continue, in words for the operator. */
  readonly why: string;
  /** Whether acknowledged filings are missing and their numbers would be assigned again. A restoration prevents that. */
  readonly givesNumbersAgain: boolean;
  /** The last known checkpoint of the old log. */
  readonly previous: PublishedCheckpoint | undefined;
  /** The name of the new log. */
  readonly origin: string;
  /** Where the old checkpoint file is copied to; undefined if there is none. */
  readonly keptAs: string | undefined;
}

/** Characters of a note that fits into a leaf, which has 65,535 bytes at most. */
const previousMax = 16_384;

/** Plans a fork and changes nothing. Returns undefined if the published log and the database agree. */
export async function planFork(dependencies: ForkDependencies): Promise<Fork | undefined> {
  const { execute, file, origin, madeUpOrigin } = dependencies;
  const state = await execute({ kind: 'GetLog' });
  const error = await disagreementOf(dependencies, state);
  if (error === undefined) return undefined;
  const restoration = await execute({ kind: 'FindRestoration' });
  const isRestored = restoration !== undefined && restoration.servedAtS === undefined;
  const written = await file.read();
  const note = written && tryReadCheckpoint(written.note);
  // The file may hold the checkpoint of another deployment.
  const inFile = note !== undefined && isOfThis(note.origin, state, origin) ? note : undefined;
  const kept = state.newest && tryReadCheckpoint(state.newest.note);
  const previous = kept !== undefined && kept.size > (inFile?.size ?? -1) ? kept : inFile;
  const names = [...state.names.map((name) => name.origin), ...(inFile === undefined ? [] : [inFile.origin])];
  const base = origin ?? state.names[0]?.origin ?? madeUpOrigin;
  const old = note?.origin ?? state.origin ?? 'unreadable';
  return {
    why: error.message,
    givesNumbersAgain: error.kind === 'DATABASE_BEHIND' && !isRestored,
    previous,
    origin: nextFork(base, names),
    keptAs: written && `${file.path}.${old.replaceAll(/[^A-Za-z0-9.-]+/g, '_')}.old`,
  };
}

/** Whether a log of that name can be the log of this database, or a fork that the database does not know. */
function isOfThis(origin: string, { names }: LogState, set: string | undefined): boolean {
  const own = [...names.map((name) => name.origin), ...(set === undefined ? [] : [set])];
  return names.length === 0 || own.some((name) => isNamedAfter(origin, name));
}

async function disagreementOf(
  { execute, file, origin, isShared }: ForkDependencies,
  state: LogState,
): Promise<EvidenceLogError | undefined> {
  try {
    checkLogName(state, origin);
    await readAgreed({ execute, state, file, last: undefined, isShared });
    return undefined;
  } catch (error) {
    if (error instanceof EvidenceLogError) return error;
    throw error;
  }
}

/**
 * Forks the log: it continues under another name with a new key, whose verifier key is returned. The server must not run.
 * After a crash, the next start continues with the new log, or the operator runs the fork again.
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
  // The next start writes a new one.
  await rm(file.path, { force: true });
  return key.vkey;
}

/** Copies a file durably. Throws an Error if a different file has that name. */
async function keep(path: string, as: string): Promise<void> {
  const content = await readFile(path);
  const there = await readFile(as).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (there !== undefined && !there.equals(content))
    throw new Error(`${as} exists and is from another fork: move it elsewhere first.`);
  await replaceFile(as, content, 0o600);
}
