import { utcTimestamp } from '../../domain/utc.ts';
import type { LogKey, LogState } from '../../store/log-commands.ts';
import type { ReadTree } from '../../store/store.ts';
import { type ReadCheckpoint, readCheckpoint, tryReadCheckpoint, withoutCosignatures } from './checkpoint.ts';
import type { CheckpointFile, WrittenNote } from './checkpoint-file.ts';
import { NoteMalformed, readVerifierKey } from './note.ts';
import { isNamedAfter } from './origin.ts';
import type { PublishedCheckpoint } from './publication.ts';

/** What keeps a log from being signed: what is wrong with the file, with the database, or with the settings. */
export type Disagreement =
  | 'FILE_MISSING'
  | 'FILE_DAMAGED'
  | 'FILE_OLD'
  | 'OTHER_LOG'
  | 'OTHER_KEY'
  | 'DATABASE_BEHIND'
  | 'DATABASE_CHANGED'
  | 'OTHER_ORIGIN';

/** What was published and the database do not agree, so that nothing is signed; the message is for the operator. */
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
const wayOn = `or, if there is none, ${forkAccepted}`;

/** What is held against each other. */
export interface Published {
  readonly execute: ReadTree;
  readonly state: LogState;
  readonly file: CheckpointFile;
  /** What this process published last; undefined if it published nothing yet. */
  readonly last: PublishedCheckpoint | undefined;
}

/**
 * The newest checkpoint that was published, as the file has it: it is of this log, signed by one of its keys, no older than
 * what the database and this process know of, and the tree of the database begins with it. Undefined if there was none yet.
 * Throws EvidenceLogError if one of that is not so. It takes a few reads by key, however large the tree is.
 */
export async function readAgreed(published: Published): Promise<PublishedCheckpoint | undefined> {
  const { execute, state, file, last } = published;
  const written = await file.read();
  if (written === undefined) return refuseMissing(published);
  if (isOfBefore(written.note, state, last)) return refuseMissing(published);
  const agreed = last !== undefined && written.note === last.note ? last : readFile(published, written);
  const inFile = `${file.path}, written ${utcTimestamp(written.writtenAtMs)}, has a checkpoint of ${agreed.size}`;
  const { size } = await execute({ kind: 'GetTree' });
  if (agreed.size > size)
    throw new EvidenceLogError(
      'DATABASE_BEHIND',
      `the database is behind what was published: it has ${size} leaves, and ${inFile}. It was restored from a backup, ` +
        `replaced by an older copy, or lost its write-ahead log. Put the newest database back, ${wayOn}.`,
    );
  const kept = state.newest && readKept(state.newest.note);
  const known = [kept, last].filter((checkpoint) => checkpoint !== undefined);
  const newer = known.find((checkpoint) => checkpoint.size > agreed.size);
  if (newer !== undefined)
    throw new EvidenceLogError(
      'FILE_OLD',
      `${inFile} leaves, and is not the newest one: one of ${newer.size} was published. Put the newest one back, ${wayOn}.`,
    );
  for (const checkpoint of distinct([agreed, ...known])) await refuseOtherTree(execute, checkpoint);
  return agreed;
}

/** Nothing was published of this log, or its file should be there. */
function refuseMissing({ state, file, last }: Published): undefined {
  const known = state.newest ?? last;
  if (known === undefined && !isKeyOfBackup(state)) return undefined;
  const why =
    known === undefined
      ? 'the database was restored from a backup with a key that may have signed since'
      : `a checkpoint of ${known.size} leaves was published`;
  throw new EvidenceLogError(
    'FILE_MISSING',
    `${file.path} is missing, although ${why}: what was published since is not ` +
      `known, so nothing is signed. Backups do not have this file. Put back the newest one of this log, ${wayOn}.`,
  );
}

/** Whether a key that signs came out of a backup: the registry that it was taken of may have gone on, and signed with it. */
function isKeyOfBackup({ keys, restoredFromS }: LogState): boolean {
  return restoredFromS !== undefined && keys.some((key) => !key.isRetired && key.addedAtS <= restoredFromS);
}

/** Each tree once. */
function distinct(checkpoints: readonly PublishedCheckpoint[]): Iterable<PublishedCheckpoint> {
  return new Map(
    checkpoints.map((checkpoint) => [`${checkpoint.size} ${hexOf(checkpoint.root)}`, checkpoint]),
  ).values();
}

/** The tree of the database has to begin with that of the checkpoint, and is no smaller. */
async function refuseOtherTree(execute: ReadTree, { size, root }: PublishedCheckpoint): Promise<void> {
  const roots = await execute({ kind: 'GetRoot', size });
  const own = roots && [roots.root, roots.stored].find((each) => hexOf(each) !== hexOf(root));
  if (roots !== undefined && own === undefined) return;
  throw new EvidenceLogError(
    'DATABASE_CHANGED',
    `the database does not agree with what was published: the tree of its first ${size} leaves has the root ` +
      `${own && hexOf(own)}, and that of the checkpoint ${hexOf(root)}. What was recorded before was changed or exchanged. ` +
      `Keep a copy of this database, and find out who changed it. Put the right one back, ${wayOn}.`,
  );
}

/** Whether a note is the last one of the log that this one was forked from, and nothing was published of this one. */
function isOfBefore(
  note: string,
  { forkedBehind, newest }: LogState,
  last: PublishedCheckpoint | undefined,
): boolean {
  if (forkedBehind === undefined || newest !== undefined || last !== undefined) return false;
  const checkpoint = tryReadCheckpoint(note);
  return checkpoint !== undefined && withoutCosignatures(checkpoint) === forkedBehind;
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The checkpoint of the file. Throws EvidenceLogError if it is none of this log. */
function readFile({ state, file }: Published, { note }: WrittenNote): ReadCheckpoint {
  const { origin } = state;
  const checkpoint = readOr(note, state.keys, (why) => {
    throw new EvidenceLogError(
      'FILE_DAMAGED',
      `${file.path} is damaged: ${why}. Put the newest one of this log back, ${wayOn}.`,
    );
  });
  if (origin === undefined)
    throw new EvidenceLogError(
      'OTHER_LOG',
      `${file.path} is of the log ${checkpoint.origin}, with ${checkpoint.size} leaves, and this database has published ` +
        `nothing: it is older, was upgraded again after going back, or is another one. Put the database of that log back, or, if ` +
        `there is none, ${forkAccepted}; only if the file is of another deployment, move it away.`,
    );
  if (checkpoint.origin !== origin)
    throw new EvidenceLogError(
      'OTHER_LOG',
      `${file.path} is of the log ${checkpoint.origin}, and this database is that of ${origin}. Put file and database of ` +
        `one log together, ${wayOn}.`,
    );
  if (!checkpoint.isSigned)
    throw new EvidenceLogError(
      'OTHER_KEY',
      `${file.path} has a checkpoint of ${checkpoint.size} leaves that is signed by no key of this database: the database is ` +
        `older than the key, or of another deployment with the same ARTSEAL_TLOG_ORIGIN, or the file was forged. Put the right ` +
        `one back, ${wayOn}.`,
    );
  return checkpoint;
}

/** The checkpoint that the database keeps. */
function readKept(note: string): ReadCheckpoint {
  return readOr(note, [], (why) => {
    throw new EvidenceLogError(
      'DATABASE_CHANGED',
      `the checkpoint that the database keeps is damaged: ${why}. Put the right database back, ${wayOn}.`,
    );
  });
}

function readOr(note: string, keys: readonly LogKey[], refuse: (why: string) => never): ReadCheckpoint {
  try {
    return readCheckpoint(
      note,
      keys.map(({ vkey }) => readVerifierKey(vkey)),
    );
  } catch (error) {
    if (error instanceof NoteMalformed) return refuse(error.message);
    throw error;
  }
}

/**
 * Refuses a setting that would give another name to a log that has one: `origin` as set, undefined if it is not. Throws
 * EvidenceLogError.
 */
export function refuseOtherOrigin({ names, origin: inForce }: LogState, origin: string | undefined): void {
  if (
    origin === undefined ||
    inForce === undefined ||
    names.some((name) => isNamedAfter(name.origin, origin))
  )
    return;
  throw new EvidenceLogError(
    'OTHER_ORIGIN',
    `ARTSEAL_TLOG_ORIGIN is ${origin}, and the log is published as ${inForce}: a log keeps its name, which its keys and all who ` +
      `check it have. Set it to ${inForce}; ${forkAccepted}.`,
  );
}
