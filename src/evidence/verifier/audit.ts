import { type Checkpoint, logSignersOf, readCheckpoint, type VerifierKey } from '../formats/checkpoint.ts';
import { isSame, readUtf8 } from '../formats/encoding.ts';
import { forked, mismatch, VerificationFailure } from '../formats/failure.ts';
import { emptyRoot, leafHash, nodeHash, tileWidth } from '../formats/tree.ts';
import { type ContentsState, checkSigners, createContents, noContents } from './contents.ts';
import { checkOrigin, type Finding, findingsOf } from './findings.ts';
import { fold, hashesOfLevel, type PublishedLog } from './published-log.ts';
import { type RecordLeaf, readLeaf } from './record.ts';
import {
  type Attestation,
  type Cosignature,
  checkDated,
  checkNotBehind,
  cosignaturesOf,
  type WitnessPolicy,
} from './seen.ts';

/** Entry bundles that are fetched at the same time, each with the tile of its hashes. */
const bundlesAtOnce = 8;

/** Bundles before the state is saved first, 16,384 leaves; later it is saved after a sixteenth of what was read. */
const bundlesBetweenStates = 64;

/**
 * How far a log was audited. A later audit continues there and changes this object. If the saved state was changed, the last checks
 * of that audit fail.
 */
export interface AuditState {
  readonly origin: string;
  /** By level, the hashes of the last, partial tile. */
  readonly rows: Uint8Array[][];
  readonly contents: ContentsState;
  /** The pin that the tree was compared with. */
  readonly pin: Checkpoint | undefined;
}

/** A checkpoint seen before, which the log has to continue. */
export interface SeenCheckpoint {
  readonly checkpoint: Checkpoint;
  /** Its name in messages, such as `the pin`. */
  readonly what: string;
  /** Who says when it existed. */
  readonly attestation?: Attestation | undefined;
}

interface AuditOptions {
  readonly keys: readonly VerifierKey[];
  /** The newest checkpoint seen before. */
  readonly pin?: Checkpoint | undefined;
  /** Other checkpoints seen before. */
  readonly seen?: readonly SeenCheckpoint[];
  readonly witnesses?: WitnessPolicy | undefined;
  /** The state of an earlier audit; undefined to read all leaves. */
  readonly state?: AuditState | undefined;
  /** The time of the auditor, Unix seconds. */
  readonly nowS: number;
  /** Reports how many leaves of how many were read. May throw to end the audit. */
  progress(done: number, total: number): void;
  /** Receives each record that is read and its leaf index. */
  onRecord?(index: number, record: RecordLeaf): void;
  /** Saves the state before it returns: the audit changes the state afterwards. */
  keep(state: AuditState): void;
}

/** The result of an audit without contradictions. */
export interface AuditReport {
  readonly checkpoint: Checkpoint;
  readonly signers: readonly VerifierKey[];
  readonly cosignatures: readonly Cosignature[];
  /** The first leaf that this audit read. */
  readonly from: number;
  readonly contents: ContentsState;
  readonly findings: readonly Finding[];
}

/**
 * Audits a log: fetches its checkpoint, leaves and tiles, and recomputes the tree from the leaves. It checks, in this order:
 * 1. The checkpoint: its form (MALFORMED), its signatures (BAD_SIGNATURE), and that it is not older than those seen before
 *    (FORKED).
 * 2. Bundle by bundle: leaves and tiles exist and have their form (MALFORMED), tiles match the leaves (HASH_MISMATCH), leaves do
 *    not contradict each other, and the tree continues those seen before (FORKED).
 * 3. The tree is the signed one, with the name in the log events (FORKED), signed by a key that is active according to them
 *    (BAD_SIGNATURE), and no leaf is dated after a cosignature (FORKED).
 *
 * Rejects with VerificationFailure, and with the errors of the log and of `progress`.
 */
export async function auditLog(log: PublishedLog, options: AuditOptions): Promise<AuditReport> {
  const checkpoint = readCheckpoint(await log.checkpoint(), 'the checkpoint');
  const signers = logSignersOf(checkpoint, options.keys, 'the checkpoint');
  const { pin, witnesses, nowS } = options;
  const cosignatures = witnesses ? cosignaturesOf(checkpoint, witnesses, 'the checkpoint') : [];
  const seen = [...(pin ? [{ checkpoint: pin, what: 'the pin' }] : []), ...(options.seen ?? [])];
  for (const one of seen) checkNotBehind(one.checkpoint, checkpoint, one.what);
  const state = usableState(options.state, checkpoint, seen);
  const from = state?.contents.size ?? 0;
  let end: AuditState;
  try {
    end = await auditTree(log, checkpoint, options, seen, state);
    const { contents } = end;
    checkOrigin(checkpoint, contents);
    checkSigners(contents.keys, signers, checkpoint);
    checkNewest(contents.size, contents.newestS, cosignatures);
  } catch (error) {
    // The saved state may be damaged: read all leaves before accusing the log.
    if (state === undefined || !(error instanceof VerificationFailure)) throw error;
    return auditLog(log, { ...options, state: undefined });
  }
  options.keep({ ...end, pin: checkpoint });
  const { contents } = end;
  const findings = findingsOf(checkpoint, contents, { pin, nowS });
  return { checkpoint, signers, cosignatures, from, contents, findings };
}

/** Checks that the newest of `size` leaves is not dated after an attestation. Earlier leaves are not later. */
function checkNewest(size: number, newestS: number | undefined, attestations: readonly Attestation[]): void {
  if (newestS !== undefined) checkDated(`leaf ${size - 1} of the log`, newestS, attestations);
}

/** Returns the state if it is of this log, and not beyond a checkpoint that it was not compared with. */
function usableState(
  state: AuditState | undefined,
  { origin, size }: Checkpoint,
  seen: readonly SeenCheckpoint[],
): AuditState | undefined {
  if (state === undefined || state.origin !== origin || state.contents.size > size) return undefined;
  const { contents, pin } = state;
  const isCovered = ({ checkpoint, attestation }: SeenCheckpoint) =>
    contents.size <= checkpoint.size ||
    (attestation === undefined && pin?.size === checkpoint.size && isSame(pin.root, checkpoint.root));
  return seen.every(isCovered) ? state : undefined;
}

async function auditTree(
  log: PublishedLog,
  checkpoint: Checkpoint,
  { pin, progress, keep, onRecord }: AuditOptions,
  seen: readonly SeenCheckpoint[],
  from: AuditState | undefined,
): Promise<AuditState> {
  const { origin, size } = checkpoint;
  const state: AuditState = {
    ...{ origin, pin, rows: from?.rows ?? [], contents: from?.contents ?? noContents() },
  };
  const leaves = state.contents;
  const contents = createContents(leaves, origin);
  const rows = createRows(log, state.rows);
  const compareSeen = () => {
    for (const one of seen) {
      if (one.checkpoint.size !== leaves.size) continue;
      if (!isSame(rows.root(), one.checkpoint.root))
        throw forked(`the first ${leaves.size} leaves are not those of ${one.what}: the log was rewritten`);
      if (one.attestation) checkNewest(leaves.size, leaves.newestS, [one.attestation]);
    }
  };

  compareSeen();
  const known = rows.takeLeaves();
  const firstBundle = Math.floor(leaves.size / tileWidth);
  let nextState = firstBundle + bundlesBetweenStates;
  const bundles = inOrder(firstBundle, Math.ceil(size / tileWidth), async (place) => {
    const width = Math.min(tileWidth, size - place * tileWidth);
    const [entries, tile] = await Promise.all([log.entries(place, width), log.tile(0, place, width)]);
    return { entries, tile };
  });
  for await (const { place, value } of bundles) {
    for (const [at, data] of value.entries.entries()) {
      const index = place * tileWidth + at;
      const hash = leafHash(data);
      if (!isSame(hash, value.tile[at] ?? emptyRoot)) {
        throw mismatch(`leaf ${index} of the log does not match its tile`);
      }
      if (index < leaves.size) {
        if (!isSame(hash, known[at] ?? emptyRoot))
          throw mismatch(`leaf ${index} of the log has changed since the last audit`);
        rows.addLeaf(hash);
        continue;
      }
      const what = `leaf ${index} of the log`;
      const leaf = readLeaf(readUtf8(data, what), what);
      contents.add(leaf);
      if (leaf.kind !== 'LOG_EVENT') onRecord?.(index, leaf);
      rows.addLeaf(hash);
      compareSeen();
    }
    await rows.completeTile(place);
    progress(leaves.size, size);
    if (place + 1 >= nextState) {
      keep(state);
      nextState = place + 1 + Math.max(bundlesBetweenStates, Math.floor(place / 16));
    }
  }
  await rows.compareLastTiles(size);
  contents.finish();
  if (!isSame(rows.root(), checkpoint.root))
    throw forked(`the ${size} leaves that the log shows do not make the tree that it signed`);
  return state;
}

/** Fetches the bundles from `from` to `to` in order, a few ahead. */
async function* inOrder<T>(from: number, to: number, fetch: (place: number) => Promise<T>) {
  const ahead: Promise<T>[] = [];
  for (let place = from; place < to; place += 1) {
    while (ahead.length < bundlesAtOnce && place + ahead.length < to) {
      const value = fetch(place + ahead.length);
      // It is awaited later. Until then its rejection must not count as unhandled.
      value.catch(() => {});
      ahead.push(value);
    }
    yield { place, value: await (ahead.shift() as Promise<T>) };
  }
}

/** The right edge of a tree: the last tile of each level. Continues from the rows of an earlier audit. */
function createRows(log: PublishedLog, rows: Uint8Array[][]) {
  function rowOf(level: number): Uint8Array[] {
    while (rows.length <= level) rows.push([]);
    return rows[level] ?? [];
  }

  async function compare(level: number, place: number, row: readonly Uint8Array[]): Promise<void> {
    const tile = await log.tile(level, place, row.length);
    if (row.some((hash, at) => !isSame(hash, tile[at] ?? emptyRoot))) {
      throw mismatch(`tile ${place} of level ${level} does not match the leaves`);
    }
  }

  return {
    /** Removes and returns the hashes of the leaves of the last, partial tile, which is fetched again. */
    takeLeaves: () => rowOf(0).splice(0),
    addLeaf: (hash: Uint8Array) => rowOf(0).push(hash),
    /** If the last tile of leaves is full, adds its root to the tile above, and so on upwards. */
    completeTile: async (place: number): Promise<void> => {
      for (let [level, at] = [0, place]; rowOf(level).length === tileWidth; level += 1) {
        const row = rowOf(level).splice(0);
        // The tiles of level 0 were compared leaf by leaf.
        if (level > 0) await compare(level, at, row);
        rowOf(level + 1).push(fold(row));
        at = Math.floor(at / tileWidth);
      }
    },
    /** Compares the partial tiles above the leaves with those of the log. */
    compareLastTiles: async (size: number): Promise<void> => {
      for (const [level, row] of rows.entries()) {
        const place = Math.floor(hashesOfLevel(level, size) / tileWidth);
        if (level > 0 && row.length > 0) await compare(level, place, row);
      }
    },
    root: (): Uint8Array => {
      const subtrees = rows.toReversed().flatMap(completeSubtrees);
      return subtrees.length === 0 ? emptyRoot : subtrees.reduceRight((right, left) => nodeHash(left, right));
    },
  };
}

/** Returns the roots of the largest complete subtrees over a row, from left to right. */
function completeSubtrees(row: readonly Uint8Array[]): readonly Uint8Array[] {
  const subtrees: Uint8Array[] = [];
  for (let [at, width] = [0, tileWidth]; width >= 1; width /= 2) {
    if (row.length - at >= width) {
      subtrees.push(fold(row.slice(at, at + width)));
      at += width;
    }
  }
  return subtrees;
}
