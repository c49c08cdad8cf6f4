import { type Checkpoint, logSignersOf, readCheckpoint } from './checkpoint.ts';
import { type ContentsState, createContents, noContents } from './contents.ts';
import { attestationsOf, type Cosignature, cosignaturesOf, type WitnessPolicy } from './cosignature.ts';
import { type Attestation, checkDated } from './dating.ts';
import { isSame } from './encoding.ts';
import { mismatch, VerificationFailure } from './failure.ts';
import { checkOrigin, type Finding, findingsOf } from './findings.ts';
import { checkSigners } from './key-lifetimes.ts';
import { type RecordLeaf, readLeafBytes } from './leaf.ts';
import type { VerifierKey } from './note.ts';
import { checkNotBehind } from './pin.ts';
import { type PublishedLog, tileWidth } from './published-log.ts';
import { createRows } from './rows.ts';
import { emptyRoot, leafHash, type Tree } from './tree.ts';

/** How many bundles of entries are fetched at a time, each with the tile of their hashes. */
const bundlesAtOnce = 8;

/** After how many bundles the state is kept first, 16,384 leaves; later after a sixteenth of what was read. */
const bundlesBetweenStates = 64;

/** How far a log was audited. A later audit can go on from there; it finds at the end what was changed in the state since. */
export interface AuditState {
  readonly origin: string;
  /** By level, the hashes of the last tile, as long as that is not full. */
  readonly rows: readonly (readonly Uint8Array[])[];
  readonly contents: ContentsState;
  /** The pin that the tree was compared with. */
  readonly pin: Tree | undefined;
}

/** A checkpoint that the log has to continue. */
export interface SeenCheckpoint {
  readonly checkpoint: Checkpoint;
  /** Such as `the pin`. */
  readonly what: string;
  /** Who says when it was there, if somebody does. */
  readonly attestation?: Attestation | undefined;
}

/** What an audit is made with. */
export interface AuditOptions {
  readonly keys: readonly VerifierKey[];
  /** The newest checkpoint that was seen before. */
  readonly pin?: Checkpoint | undefined;
  /** Other checkpoints that were seen. */
  readonly seen?: readonly SeenCheckpoint[];
  /** Witnesses that have to have cosigned the checkpoint. */
  readonly witnesses?: WitnessPolicy | undefined;
  /** Where an earlier audit got to; undefined to read all leaves. */
  readonly state?: AuditState | undefined;
  /** The time of the auditor, Unix seconds. */
  readonly nowS: number;
  /** Is called with how many leaves are read, of how many. May throw, which ends the audit. */
  progress(done: number, total: number): void;
  /** Is called with each record that is read and its leaf, from 0. */
  onRecord?(index: number, record: RecordLeaf): void;
  /** Keeps the state. */
  keep(state: AuditState): void;
}

/** What an audit found, where nothing is wrong. */
export interface AuditReport {
  readonly checkpoint: Checkpoint;
  readonly signers: readonly VerifierKey[];
  readonly cosignatures: readonly Cosignature[];
  /** The leaf that the audit went on from. */
  readonly from: number;
  readonly contents: ContentsState;
  readonly findings: readonly Finding[];
}

/**
 * Audits a log: fetches its checkpoint, all leaves and all tiles, recomputes the tree from the leaves, and compares. In this
 * order: the form of the checkpoint (MALFORMED), its signature and cosignatures (BAD_SIGNATURE), that it is not behind what was
 * seen (FORKED); then bundle by bundle that leaves and tiles are there and of their form (MALFORMED), that tiles are those of
 * the leaves (HASH_MISMATCH), that leaves agree with each other and the tree with what was seen (FORKED); at the end that the
 * tree is the one that was signed, under the name that the leaves say (FORKED), by a key that they say signs (BAD_SIGNATURE), and
 * that no leaf is dated after a cosignature (FORKED). Rejects with VerificationFailure, and with the errors of the log and of
 * `progress`.
 */
export async function auditLog(log: PublishedLog, options: AuditOptions): Promise<AuditReport> {
  const checkpoint = readCheckpoint(await log.checkpoint(), 'the checkpoint');
  const signers = logSignersOf(checkpoint, options.keys, 'the checkpoint');
  const { pin, witnesses, nowS } = options;
  const cosignatures = witnesses ? cosignaturesOf(checkpoint, witnesses, 'the checkpoint') : [];
  const seen = [...(pin ? [{ checkpoint: pin, what: 'the pin' }] : []), ...(options.seen ?? [])];
  for (const one of seen) checkNotBehind(one.checkpoint, checkpoint, one.what);
  const state = usableState(options.state, checkpoint, seen);
  let end: AuditState;
  try {
    end = await auditTree(log, checkpoint, options, seen, state);
    const { contents } = end;
    checkOrigin(checkpoint, contents);
    checkSigners(contents.keys, signers, checkpoint);
    checkNewest(contents.size, contents.newestS, attestationsOf(cosignatures));
  } catch (error) {
    // The log is not accused because of a state that was damaged here.
    if (state === undefined || !(error instanceof VerificationFailure)) throw error;
    return auditLog(log, { ...options, state: undefined });
  }
  options.keep({ ...end, pin: treeOf(checkpoint) });
  const { contents } = end;
  const findings = findingsOf(checkpoint, contents, { pin, nowS });
  return { checkpoint, signers, cosignatures, from: state?.contents.size ?? 0, contents, findings };
}

/** Checks that the newest of so many leaves, and so every one before, is not dated after what somebody attests to. */
function checkNewest(size: number, newestS: number | undefined, attestations: readonly Attestation[]): void {
  if (newestS !== undefined) checkDated(`leaf ${size - 1} of the log`, newestS, attestations);
}

/** The state, if an audit can go on from it: one of this log, and of no leaves after a checkpoint that it was not compared with. */
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
  const contents = createContents(from?.contents ?? noContents);
  const rows = createRows(log, from?.rows ?? []);
  let done = from?.contents.size ?? 0;
  const state = (): AuditState => ({
    origin,
    rows: rows.all(),
    contents: contents.state(),
    pin: treeOf(pin),
  });
  const compareSeen = () => {
    for (const one of seen) {
      if (one.checkpoint.size !== done) continue;
      if (!isSame(rows.root(), one.checkpoint.root))
        throw forked(`the first ${done} leaves are not those of ${one.what}: the log was rewritten`);
      if (one.attestation) checkNewest(done, contents.newestS(), [one.attestation]);
    }
  };

  compareSeen();
  const known = rows.takeLeaves();
  const firstBundle = Math.floor(done / tileWidth);
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
        throw mismatch(`leaf ${index} of the log is not the one that its tile has the hash of`);
      }
      if (index < done) {
        if (!isSame(hash, known[at] ?? emptyRoot))
          throw mismatch(`leaf ${index} of the log is not what it was before`);
        rows.addLeaf(hash);
        continue;
      }
      const leaf = readLeafBytes(data, `leaf ${index} of the log`);
      contents.add(leaf);
      if (leaf.kind !== 'ACT') onRecord?.(index, leaf);
      rows.addLeaf(hash);
      done = index + 1;
      compareSeen();
    }
    await rows.completeTile(place);
    progress(done, size);
    if (place + 1 >= nextState) {
      keep(state());
      nextState = place + 1 + Math.max(bundlesBetweenStates, Math.floor(place / 16));
    }
  }
  await rows.compareLastTiles(size);
  contents.finish();
  if (!isSame(rows.root(), checkpoint.root))
    throw forked(`the ${size} leaves that the log shows do not make the tree that it signed`);
  return state();
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

const forked = (what: string): VerificationFailure => new VerificationFailure('FORKED', what);
