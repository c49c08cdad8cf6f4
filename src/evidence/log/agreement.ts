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
}

/**
 * Returns the newest published checkpoint, which the file holds; undefined if nothing was published. It checks that the
 * checkpoint is of this log, signed by one of its keys, no older than those that the database and this process know, and
 * that the tree of the database begins with it. Throws EvidenceLogError. The cost does not depend on the size of the tree.
 */
export async function readAgreed(published: Published): Promise<PublishedCheckpoint | undefined> {
  const { execute, state, file, last } = published;
  const written = await file.read();
  if (written === undefined || isBeforeFork(written.note, state, last))
    return checkNothingPublished(published);
  const agreed = last !== undefined && written.note === last.note ? last : readFile(published, written);
  const inFile = `${file.path}, written ${utcTimestamp(written.writtenAtMs)}, has a checkpoint of ${agreed.size}`;
  const { size } = await execute({ kind: 'GetTree' });
  if (agreed.size > size)
    throw new EvidenceLogError(
      'DATABASE_BEHIND',
      `the database is older than what was published: it has ${size} leaves, and ${inFile}. It was restored from a backup, ` +
        `replaced by an older copy, or lost its write-ahead log. Put the newest database back, ${orFork}. On PostgreSQL, run ` +
        'artseal database restored before, which skips the numbers that were given out since.',
    );
  const { newest } = state;
  const damaged = 'the checkpoint in the database is damaged';
  const kept = newest && orThrow('DATABASE_CHANGED', damaged, () => readCheckpoint(newest.note, 'it'));
  const known = [kept, last].filter((checkpoint) => checkpoint !== undefined);
  const newer = known.find((checkpoint) => checkpoint.size > agreed.size);
  if (newer !== undefined)
    throw new EvidenceLogError(
      'FILE_OLD',
      `${inFile} leaves, and is not the newest one: one of ${newer.size} was published. Put the newest one back, ${orFork}.`,
    );
  const trees = new Map([agreed, ...known].map((tree) => [`${tree.size} ${hex(tree.root)}`, tree]));
  for (const tree of trees.values()) await checkTree(execute, tree);
  return agreed;
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

/** Whether a note is the last one of the log that this log was forked from, and this log published nothing yet. */
function isBeforeFork(
  note: string,
  { forkedAfter, newest }: LogState,
  last: PublishedCheckpoint | undefined,
): boolean {
  if (forkedAfter === undefined || newest !== undefined || last !== undefined) return false;
  const checkpoint = tryReadCheckpoint(note);
  return checkpoint !== undefined && withoutCosignatures(checkpoint) === forkedAfter;
}

/** Reads the checkpoint of the file. Throws EvidenceLogError if it is not of this log. */
function readFile({ state, file }: Published, { note }: WrittenNote): Checkpoint {
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
