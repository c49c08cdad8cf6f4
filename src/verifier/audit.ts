import { type Checkpoint, logSignersOf, readCheckpoint } from './checkpoint.ts';
import { type ContentsState, createContents, noContents } from './contents.ts';
import { isSame } from './encoding.ts';
import { VerificationFailure } from './failure.ts';
import { readLeafBytes } from './leaf.ts';
import type { VerifierKey } from './note.ts';
import { checkNotBehind } from './pin.ts';
import { fold, hashesOfLevel, type PublishedLog, tileWidth } from './published-log.ts';
import { emptyRoot, leafHash, nodeHash, type Tree } from './tree.ts';

/** How many bundles of entries are fetched at a time, each with the tile of their hashes. */
const bundlesAtOnce = 8;

/** After how many bundles the state is kept: 16,384 leaves. */
const bundlesBetweenStates = 64;

/** How far a log was audited. Whoever keeps it goes on from there; what was changed in it since is found at the end. */
export interface AuditState {
  readonly origin: string;
  /** By level, the hashes of the last tile, as long as that is not full. */
  readonly rows: readonly (readonly Uint8Array[])[];
  readonly contents: ContentsState;
  /** The pin that the tree was compared with. */
  readonly pin: Tree | undefined;
}

/** What an audit is made with. */
export interface AuditOptions {
  readonly keys: readonly VerifierKey[];
  /** The newest checkpoint that was seen before. */
  readonly pin?: Checkpoint | undefined;
  /** Where an earlier audit got to. */
  readonly state?: AuditState | undefined;
  /** Hears how many leaves are read, of how many. May throw, which ends the audit. */
  progress(done: number, total: number): void;
  /** Keeps the state. */
  keep(state: AuditState): void;
}

/** What an audit found, where nothing is wrong. */
export interface AuditReport {
  readonly checkpoint: Checkpoint;
  readonly signers: readonly VerifierKey[];
  /** The leaf that the audit went on from. */
  readonly from: number;
  readonly contents: ContentsState;
}

/**
 * Audits a log: fetches its checkpoint, all leaves and all tiles, recomputes the tree from the leaves, and compares. In this
 * order: the form of the checkpoint (MALFORMED), its signature (BAD_SIGNATURE), that it does not go behind the pin (FORKED);
 * then bundle by bundle that leaves and tiles are there and of their form (MALFORMED), that tiles are those of the leaves
 * (HASH_MISMATCH), that leaves agree with each other and the tree with the pin (FORKED); at the end that the tree is the
 * one that was signed (FORKED). Rejects with VerificationFailure, and with the errors of the log and of `progress`.
 */
export async function auditLog(log: PublishedLog, options: AuditOptions): Promise<AuditReport> {
  const checkpoint = readCheckpoint(await log.checkpoint(), 'the checkpoint');
  const signers = logSignersOf(checkpoint, options.keys, 'the checkpoint');
  const { pin } = options;
  if (pin !== undefined) checkNotBehind(pin, checkpoint);
  const state = usableState(options.state, checkpoint, pin);
  let contents: ContentsState;
  try {
    contents = await auditTree(log, checkpoint, options, state);
  } catch (error) {
    // Nobody is accused for a state that was damaged here.
    if (state === undefined || !(error instanceof VerificationFailure)) throw error;
    return auditLog(log, { ...options, state: undefined });
  }
  return { checkpoint, signers, from: state?.contents.size ?? 0, contents };
}

/** The state, if an audit can go on from it: one of this log, and not of leaves behind a pin that it was not compared with. */
function usableState(
  state: AuditState | undefined,
  { origin, size }: Checkpoint,
  pin: Checkpoint | undefined,
): AuditState | undefined {
  if (state === undefined || state.origin !== origin || state.contents.size > size) return undefined;
  const isBeforePin = pin === undefined || state.contents.size <= pin.size;
  const isOfPin = pin !== undefined && state.pin?.size === pin.size && isSame(state.pin.root, pin.root);
  return isBeforePin || isOfPin ? state : undefined;
}

async function auditTree(
  log: PublishedLog,
  checkpoint: Checkpoint,
  { pin, progress, keep }: AuditOptions,
  from: AuditState | undefined,
): Promise<ContentsState> {
  const { origin, size } = checkpoint;
  const contents = createContents(from?.contents ?? noContents);
  const rows = createRows(log, from?.rows ?? []);
  let done = from?.contents.size ?? 0;
  const state = (): AuditState => ({
    origin,
    rows: rows.all(),
    contents: contents.state(),
    pin: treeOf(pin),
  });
  const comparePin = () => {
    if (pin?.size === done && !isSame(rows.root(), pin.root)) {
      throw new VerificationFailure(
        'FORKED',
        `the first ${done} leaves are not those of the pin: the log was rewritten`,
      );
    }
  };

  comparePin();
  const known = rows.takeLeaves();
  const bundles = inOrder(Math.floor(done / tileWidth), Math.ceil(size / tileWidth), async (place) => {
    const width = Math.min(tileWidth, size - place * tileWidth);
    const [entries, tile] = await Promise.all([log.entries(place, width), log.tile(0, place, width)]);
    return { entries, tile };
  });
  for await (const { place, value } of bundles) {
    for (const [at, data] of value.entries.entries()) {
      const index = place * tileWidth + at;
      const hash = leafHash(data);
      if (!isSame(hash, value.tile[at] ?? emptyRoot)) {
        throw mismatch(`leaf ${index} of the log is not the one that its tile has the hash of`);
      }
      if (index < done) {
        if (!isSame(hash, known[at] ?? emptyRoot))
          throw mismatch(`leaf ${index} of the log is not what it was before`);
        rows.addLeaf(hash);
        continue;
      }
      contents.add(readLeafBytes(data, `leaf ${index} of the log`));
      rows.addLeaf(hash);
      done = index + 1;
      comparePin();
    }
    await rows.completeTile(place);
    progress(done, size);
    if ((place + 1) % bundlesBetweenStates === 0) keep(state());
  }
  await rows.compareLastTiles(size);
  contents.finish();
  if (!isSame(rows.root(), checkpoint.root)) {
    throw new VerificationFailure(
      'FORKED',
      `the ${size} leaves that the log shows do not make the tree that it signed`,
    );
  }
  const end = state();
  keep({ ...end, pin: treeOf(checkpoint) });
  return end.contents;
}

/** The right edge of a tree, tile by tile. */
interface Rows {
  all(): readonly (readonly Uint8Array[])[];
  /** The hashes of the last leaves, which are fetched again; takes them out. */
  takeLeaves(): readonly Uint8Array[];
  addLeaf(hash: Uint8Array): void;
  /** If the tile of leaves of that place is full now: takes its root into the tile above, and so on upwards. */
  completeTile(place: number): Promise<void>;
  /** Compares the tiles above the leaves that are not full with those that the log shows. */
  compareLastTiles(size: number): Promise<void>;
  root(): Uint8Array;
}

function createRows(log: PublishedLog, from: readonly (readonly Uint8Array[])[]): Rows {
  const rows = from.map((row) => [...row]);

  function rowOf(level: number): Uint8Array[] {
    while (rows.length <= level) rows.push([]);
    return rows[level] ?? [];
  }

  async function compare(level: number, place: number, row: readonly Uint8Array[]): Promise<void> {
    const tile = await log.tile(level, place, row.length);
    if (row.some((hash, at) => !isSame(hash, tile[at] ?? emptyRoot))) {
      throw mismatch(`tile ${place} of level ${level} is not that of the leaves`);
    }
  }

  return {
    all: () => rows.map((row) => [...row]),
    takeLeaves: () => rowOf(0).splice(0),
    addLeaf: (hash) => rowOf(0).push(hash),
    completeTile: async (place) => {
      for (let [level, at] = [0, place]; rowOf(level).length === tileWidth; level += 1) {
        const row = rowOf(level).splice(0);
        // Those of the leaves were compared leaf by leaf.
        if (level > 0) await compare(level, at, row);
        rowOf(level + 1).push(fold(row));
        at = Math.floor(at / tileWidth);
      }
    },
    compareLastTiles: async (size) => {
      for (const [level, row] of rows.entries()) {
        const place = Math.floor(hashesOfLevel(level, size) / tileWidth);
        if (level > 0 && row.length > 0) await compare(level, place, row);
      }
    },
    root: () => {
      const subtrees = rows.toReversed().flatMap(completeSubtrees);
      return subtrees.length === 0 ? emptyRoot : subtrees.reduceRight((right, left) => nodeHash(left, right));
    },
  };
}

/** The roots of the largest complete subtrees above a row, from left to right. */
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

/** What is fetched for these places, in their order, a few ahead. */
async function* inOrder<T>(from: number, to: number, fetch: (place: number) => Promise<T>) {
  const ahead: Promise<T>[] = [];
  for (let place = from; place < to; place += 1) {
    while (ahead.length < bundlesAtOnce && place + ahead.length < to) {
      const value = fetch(place + ahead.length);
      // It is awaited when its turn comes; until then its failure is nobody's.
      value.catch(() => {});
      ahead.push(value);
    }
    yield { place, value: await (ahead.shift() as Promise<T>) };
  }
}

/** What is compared of a checkpoint. */
const treeOf = (tree: Tree | undefined): Tree | undefined => tree && { size: tree.size, root: tree.root };

const mismatch = (what: string): VerificationFailure => new VerificationFailure('HASH_MISMATCH', what);
