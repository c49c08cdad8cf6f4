import { utcTimestamp } from '../../domain/utc.ts';
import type { LogNames, LogState } from '../../store/log-commands.ts';
import type { ReadTree } from '../../store/store.ts';
import { type Checkpoint, findSigners, readCheckpoint, readVerifierKey } from '../formats/checkpoint.ts';
import { hex } from '../formats/encoding.ts';
import { VerificationFailure } from '../formats/failure.ts';
import {
  type CheckpointFile,
  isNamedAfter,
  type PublishedCheckpoint,
  tryReadCheckpoint,
  type WrittenNote,
  withoutCosignatures,
} from './publication.ts';

/** Why a log cannot be signed: the checkpoint file, the database and the settings do not agree. */
export type Disagreement =
  | 'FILE_MISSING'
  | 'FILE_DAMAGED'
  | 'FILE_OLD'
  | 'OTHER_LOG'
  | 'OTHER_KEY'
  | 'DATABASE_BEHIND'
  | 'DATABASE_CHANGED'
  | 'OTHER_ORIGIN';

/** The published log and the database do not agree, so nothing is signed. The message is for the operator. */
export class EvidenceLogError extends Error {
  override name = 'EvidenceLogError';
  readonly kind: Disagreement;

  constructor(kind: Disagreement, message: string) {
    super(message);
    this.kind = kind;
  }
}

const forkAccepted =
  'artseal evidence fork --accept begins a new log that names the last checkpoint of this one';
const orFork = `or, if it is lost, ${forkAccepted}`;

/** What is compared. */
export interface Published {
  readonly execute: ReadTree;
  readonly state: LogState;
  readonly file: CheckpointFile;
  /** The checkpoint that this process published last. */
  readonly last: PublishedCheckpoint | undefined;
  /** Whether several instances publish the log, each with a file of its own. */
  readonly isShared: boolean;
}

/**
 * Returns the newest published checkpoint; undefined if nothing was published. The file holds it, or the database if the log is
 * shared. It checks that the checkpoint is of this log, signed by one of its keys, no older than those that the database and this
 * instance know, and that the tree of the database begins with it. Throws EvidenceLogError. The cost does not depend on the size of
 * the tree.
 */
export async function readAgreed(published: Published): Promise<PublishedCheckpoint | undefined> {
  const newest = await readNewest(published);
  if (newest !== undefined) await checkDatabase(published, newest);
  return newest?.checkpoint;
}

/** The newest published checkpoint, and where it was found. */
export interface Newest {
  readonly checkpoint: PublishedCheckpoint;
  /** The one in the file of this instance. */
  readonly inFile: PublishedCheckpoint | undefined;
  /** The start of a message for the operator, which ends with its number of leaves. */
  readonly found: string;
}

/** Like `readAgreed`, but does not compare the checkpoint with the tree of the database. */
export async function readNewest(published: Published): Promise<Newest | undefined> {
  const { file } = published;
  const written = await file.read();
  const inFile = written && readFile(published, written);
  const adopted = readAdopted(published);
  if (adopted !== undefined && adopted.size >= (inFile?.size ?? 0))
    return { checkpoint: adopted, inFile, found: `the database keeps a checkpoint of ${adopted.size}` };
  if (inFile === undefined) return checkNothingPublished(published);
  const writtenAt = utcTimestamp(written?.writtenAtMs ?? 0);
  const found = `${file.path}, written ${writtenAt}, has a checkpoint of ${inFile.size}`;
  return { checkpoint: inFile, inFile, found };
}

/** Throws EvidenceLogError unless the tree of the database begins with all known checkpoints. */
export async function checkDatabase(
  { execute, state, last }: Pick<Published, 'execute' | 'state' | 'last'>,
  { checkpoint, inFile, found }: Newest,
): Promise<void> {
  const { size } = await execute({ kind: 'GetTree' });
  if (checkpoint.size > size)
    throw new EvidenceLogError(
      'DATABASE_BEHIND',
      `the database is older than what was published: it has ${size} leaves, and ${found}. It was restored from a backup, ` +
        `replaced by an older copy, or lost its write-ahead log. Put the newest database back, ${orFork}. On PostgreSQL, first ` +
        'run artseal database restored: it skips the numbers that were given out since.',
    );
  const known = [inFile, readKept(state), last].filter((one) => one !== undefined);
  const newer = known.find((one) => one.size > checkpoint.size);
  if (newer !== undefined)
    throw new EvidenceLogError(
      'FILE_OLD',
      `${found} leaves, and is not the newest one: one of ${newer.size} was published. Put the newest one back, ${orFork}.`,
    );
  const trees = new Map([checkpoint, ...known].map((tree) => [`${tree.size} ${hex(tree.root)}`, tree]));
  for (const tree of trees.values()) await checkTree(execute, tree);
}

/** Reads the checkpoint that the database keeps. Throws EvidenceLogError if it is damaged. */
function readKept({ newest }: LogState): Checkpoint | undefined {
  const damaged = 'the checkpoint in the database is damaged';
  return newest && orThrow('DATABASE_CHANGED', damaged, () => readCheckpoint(newest.note, 'it'));
}

/**
 * Reads the checkpoint in the database if another instance may have published it. Ignores one that comes from a backup, since a newer
 * one may have been published. Throws EvidenceLogError if no key of the log signed it.
 */
function readAdopted({ state, last, isShared }: Published): PublishedCheckpoint | undefined {
  const { newest, restoredAtS, keys } = state;
  if (!isShared || newest === undefined) return undefined;
  if (newest.note === last?.note) return last;
  if (restoredAtS !== undefined && newest.publishedAtS <= restoredAtS) return undefined;
  const kept = readKept(state);
  const vkeys = keys.map(({ vkey }) => vkey);
  if (isSignedBy(newest.note, vkeys)) return kept;
  throw new EvidenceLogError(
    'DATABASE_CHANGED',
    `the checkpoint in the database is signed by no key of this log: it was forged. Put the right database back, ${orFork}.`,
  );
}

/** Throws EvidenceLogError if something was published, so that the file should exist. */
function checkNothingPublished({ state, file, last }: Published): undefined {
  const known = state.newest ?? last;
  if (known === undefined && !isKeyOfBackup(state)) return undefined;
  const why =
    known === undefined
      ? 'the database was restored from a backup with a key that may have signed since'
      : `a checkpoint of ${known.size} leaves was published`;
  throw new EvidenceLogError(
    'FILE_MISSING',
    `${file.path} is missing, although ${why}. Without it nobody knows what was published since, so nothing is signed. ` +
      `Backups do not contain this file. Put back the newest one of this log, ${orFork}.`,
  );
}

/** Whether an active key comes from a backup. The registry that the backup was taken of may have signed with it since. */
function isKeyOfBackup({ keys, restoredFromS }: LogState): boolean {
  return restoredFromS !== undefined && keys.some((key) => !key.isRetired && key.addedAtS <= restoredFromS);
}

/** Throws EvidenceLogError if the tree of the database does not begin with the tree of a checkpoint. */
async function checkTree(execute: ReadTree, { size, root }: PublishedCheckpoint): Promise<void> {
  const roots = await execute({ kind: 'GetRoot', size });
  const own = roots && [roots.root, roots.stored].find((each) => hex(each) !== hex(root));
  if (roots !== undefined && own === undefined) return;
  throw new EvidenceLogError(
    'DATABASE_CHANGED',
    `the database does not agree with what was published: the tree of its first ${size} leaves has the root ` +
      `${own && hex(own)}, and that of the checkpoint ${hex(root)}. Earlier records were changed or exchanged. ` +
      `Keep a copy of this database, and find out who changed it. Put the right one back, ${orFork}.`,
  );
}

/** Whether a note is of a log that this log was forked from. If only one instance publishes, only the last note of that log counts. */
function isOfEarlierLog(note: string, { state, last, isShared }: Published): boolean {
  const { origin, names, forkedAfter, newest } = state;
  if (forkedAfter === undefined) return false;
  const checkpoint = tryReadCheckpoint(note);
  if (checkpoint === undefined) return false;
  if (isShared)
    return checkpoint.origin !== origin && names.some((name) => name.origin === checkpoint.origin);
  return newest === undefined && last === undefined && withoutCosignatures(checkpoint) === forkedAfter;
}

/** Reads the checkpoint of the file; undefined if it is of an earlier log. Throws EvidenceLogError if it is not of this log. */
function readFile(published: Published, { note }: WrittenNote): PublishedCheckpoint | undefined {
  const { state, file, last } = published;
  if (isOfEarlierLog(note, published)) return undefined;
  if (note === last?.note) return last;
  const { origin } = state;
  const { checkpoint, isSigned } = orThrow('FILE_DAMAGED', `${file.path} is damaged`, () => {
    const read = readCheckpoint(note, 'it');
    const keys = state.keys.map(({ vkey }) => readVerifierKey(vkey));
    return { checkpoint: read, isSigned: findSigners(read, keys, 'it').length > 0 };
  });
  if (origin === undefined)
    throw new EvidenceLogError(
      'OTHER_LOG',
      `${file.path} is of the log ${checkpoint.origin}, with ${checkpoint.size} leaves, and this database has published ` +
        `nothing: it is older, or belongs to another deployment. Put the database of that log ` +
        `back, or, if it is lost, ${forkAccepted}; only if the file is of another deployment, move it away.`,
    );
  if (checkpoint.origin !== origin)
    throw new EvidenceLogError(
      'OTHER_LOG',
      `${file.path} is of the log ${checkpoint.origin}, and this database is that of ${origin}. Put file and database of ` +
        `one log together, ${orFork}.`,
    );
  if (!isSigned)
    throw new EvidenceLogError(
      'OTHER_KEY',
      `${file.path} has a checkpoint of ${checkpoint.size} leaves that is signed by no key of this database: the database is ` +
        `older than the key, or of another deployment with the same ARTSEAL_TLOG_ORIGIN, or the file was forged. Put the right ` +
        `one back, ${orFork}.`,
    );
  return checkpoint;
}

/** Whether a note is a checkpoint that one of these verifier keys signed. */
export function isSignedBy(note: string, vkeys: readonly string[]): boolean {
  const checkpoint = tryReadCheckpoint(note);
  if (checkpoint === undefined) return false;
  try {
    return findSigners(checkpoint, vkeys.map(readVerifierKey), 'it').length > 0;
  } catch (error) {
    if (error instanceof VerificationFailure) return false;
    throw error;
  }
}

function orThrow<T>(kind: Disagreement, what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    const sides = kind === 'FILE_DAMAGED' ? 'the newest one of this log' : 'the right database';
    throw new EvidenceLogError(kind, `${what}: ${error.message}. Put ${sides} back, ${orFork}.`);
  }
}

/** Throws EvidenceLogError if `origin`, as set, would rename a log that has a name. */
export function checkLogName({ names, origin: current }: LogNames, origin: string | undefined): void {
  if (origin === undefined || current === undefined) return;
  if (names.some((name) => isNamedAfter(name.origin, origin))) return;
  throw new EvidenceLogError(
    'OTHER_ORIGIN',
    `ARTSEAL_TLOG_ORIGIN is ${origin}, and the log is published as ${current}: a log keeps its name, which its keys contain ` +
      `and everybody who checks it knows. Set it to ${current}; ${forkAccepted}.`,
  );
}
