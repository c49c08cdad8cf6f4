import { randomFillSync } from 'node:crypto';
import type { InferSelectModel } from 'drizzle-orm';
import {
  type LogEventDetail,
  type LogEventKind,
  logEventLeafData,
  recordLeafData,
  timeOfLeaf,
} from '../../domain/leaf.ts';
import { appendLeaf, leafHash, type TreeHead } from '../../domain/merkle.ts';
import { type Incidents, RecordDamaged } from './failure.ts';
import type { Leaves, StoredLeaf } from './leaves.ts';
import { createLogIndex, type LogIndex, type NotedLeaf } from './log-index.ts';
import type { LeafPlace, NewLeaf } from './parts.ts';
import type { logEvent } from './schema.ts';
import { createVerifiedTree, type VerifiedTree } from './verified-tree.ts';

/**
 * Appends to the evidence log, inside the transaction that stores the records of the leaves. A command appends leaves; the core
 * then keeps or drops them with the rows of the command, writes the kept leaves at the latest before COMMIT, and calls
 * `committed` or `rolledBack`.
 */
export interface EvidenceLog {
  /** The tree that this process verified. */
  readonly tree: VerifiedTree;
  /** An index of the leaves of that tree by filing. */
  readonly index: LogIndex;
  /** Appends the leaf of a record. The caller stores the result with the record. */
  appendRecord(record: NewLeaf): LeafPlace;
  /** Appends a log event. */
  appendLogEvent(kind: LogEventKind, atS: number, detail: LogEventDetail): void;
  /** When the newest leaf was made, Unix seconds; undefined if there is none. */
  newestS(): number | undefined;
  /** The number of log events. */
  events(): number;
  /** The number of the newest filing in the log; undefined until it was compared with the tables. */
  newestFiling(): string | undefined;
  /** Keeps the leaves of a command that succeeded, to be written with others. */
  keep(): void;
  /** Drops the leaves of a command that was undone. */
  drop(): void;
  /** Reads the tables again after another instance has added leaves. Call it before anything is appended. */
  readAgain(): void;
  /** Then also reads the new leaves into the index, if that had all leaves before. */
  indexAgain(): void;
  /** Writes all leaves that were appended. Call it before a command reads them in the tables. */
  write(): void;
  committed(): void;
  rolledBack(): void;
}

/** Bytes of salts that are drawn at a time, which saves system calls. */
const saltPoolBytes = 8_192;

/** A summary of the leaves up to one of them. */
interface Known {
  /** The number of log events among them. */
  readonly events: number;
  readonly newestS: number | undefined;
}

/** A leaf that is not written yet. */
interface Pending {
  readonly data: string;
  readonly noted: NotedLeaf;
  /** The row of a log event. */
  readonly event?: Omit<InferSelectModel<typeof logEvent>, 'leafIndex'>;
  /** The summary up to this leaf. */
  readonly known: Known;
}

/** The tree as it is in the tables. */
interface Written extends Known {
  readonly tree: TreeHead;
}

/** The tables of the log. */
export interface LogTables {
  readonly leaves: Leaves;
  /** Appends leaves to the first `size` leaves. */
  append(size: number, leaves: readonly StoredLeaf[]): void;
  /** The number of log events. */
  events(): number;
  insertEvent(row: InferSelectModel<typeof logEvent>): void;
}

/** The evidence log in tables. */
export function createLog(tables: LogTables, incidents?: Incidents, isSandbox?: boolean): EvidenceLog {
  const { leaves } = tables;
  const tree = createVerifiedTree(leaves);
  const index = createLogIndex(leaves, tree, () => incidents?.count('damagedRecords'), isSandbox);
  const newSalt = createSalts();
  const pending: Pending[] = [];
  /** How many of them are of commands that succeeded. */
  let kept = 0;
  let newestFiling: string | undefined;
  /** The same, without the command that runs now. */
  let newestKept: string | undefined;
  const written = readTables(tables, tree);

  const known = (): Known => pending.at(-1)?.known ?? written.current();
  const size = () => written.current().tree.size + pending.length;

  function pushLogEvent(kind: LogEventKind, timeS: number, detail: LogEventDetail): void {
    const sequence = known().events + 1;
    pending.push({
      data: logEventLeafData({ kind, sequence, timeS, detail }),
      noted: { kind, number: 'LOG', time: timeS, detail },
      event: { sequence, kind, timeS, detail: JSON.stringify(detail) },
      known: { events: sequence, newestS: timeS },
    });
  }

  /** The time of the next leaf. Begins the log if it is empty. */
  function begun(atS: number): number {
    if (size() === 0) pushLogEvent('LOG_BEGUN', atS, { adopted: 0 });
    return Math.max(atS, known().newestS ?? atS);
  }

  return {
    tree,
    index,
    appendRecord: ({ kind, number, sequence, atS, saltBytes, commitment }) => {
      const timeS = begun(atS);
      const salt = newSalt(saltBytes);
      const data = recordLeafData({ kind, number, sequence, timeS, commitment: commitment(salt) });
      const leafIndex = size();
      const noted = { kind, number, time: timeS };
      pending.push({ data, noted, known: { events: known().events, newestS: timeS } });
      if (kind === 'FILING') newestFiling = number;
      return { salt, leafIndex };
    },
    appendLogEvent: (kind, atS, detail) => {
      const laterS = begun(atS);
      // Only a time that an operator accepted may be earlier than the leaf before.
      pushLogEvent(kind, kind === 'CLOCK_ACCEPTED' ? atS : laterS, detail);
    },
    newestS: () => known().newestS,
    newestFiling: () => newestFiling,
    events: () => known().events,
    keep: () => {
      kept = pending.length;
      newestKept = newestFiling;
    },
    drop: () => {
      pending.length = kept;
      newestFiling = newestKept;
    },
    readAgain: written.readAgain,
    indexAgain: () => {
      const newest = index.newestFiling();
      newestFiling = newestKept = newestFiling && newest;
    },
    write: () => {
      if (pending.length === 0) return;
      const { tree: before } = written.current();
      const { head, stored } = grow(before, pending);
      tables.append(before.size, stored);
      for (const { completed } of stored) tree.append(completed);
      for (const [place, { event, noted }] of pending.entries()) {
        const leafIndex = before.size + place;
        if (event !== undefined) tables.insertEvent({ ...event, leafIndex });
        index.appended(leafIndex, noted);
      }
      written.set({ ...known(), tree: head });
      pending.length = kept = 0;
      newestKept = newestFiling;
    },
    committed: () => {
      for (const part of [written, tree, index]) part.committed();
    },
    rolledBack: () => {
      written.rolledBack();
      pending.length = kept = 0;
      newestFiling = newestKept = undefined;
      tree.rolledBack();
      index.rolledBack();
    },
  };
}

/** What the tables of the log have, which is read once. */
function readTables({ leaves, events }: LogTables, tree: VerifiedTree) {
  /** Undefined until they are read. */
  let written: Written | undefined;
  /** The same, as of the last transaction that was committed. */
  let durable: Written | undefined;

  function read(): Written {
    tree.load();
    const head = tree.head();
    const { size } = head;
    const [last] = size === 0 ? [] : leaves.dataFrom(size - 1, 1);
    if (size > 0 && (last === undefined || !tree.hasLeaf(size - 1, last)))
      throw new RecordDamaged(`Leaf ${size - 1} of the evidence log is not what was recorded.`);
    return {
      tree: head,
      events: events(),
      newestS: last === undefined ? undefined : timeOfLeaf(last),
    };
  }

  return {
    current: (): Written => {
      written ??= read();
      return written;
    },
    readAgain: () => {
      written = durable = read();
    },
    set: (next: Written) => {
      written = next;
    },
    committed: () => {
      durable = written;
    },
    rolledBack: () => {
      written = durable;
    },
  };
}

/** The hashes of leaves that are appended to a tree, and the tree with them. */
function grow(
  tree: TreeHead,
  pending: readonly Pending[],
): { head: TreeHead; stored: readonly StoredLeaf[] } {
  let head = tree;
  const stored = pending.map(({ data }) => {
    const appended = appendLeaf(head, leafHash(data));
    head = appended.tree;
    return { data, completed: appended.completed };
  });
  return { head, stored };
}

/** Draws salts. */
function createSalts(): (bytes: number) => Buffer {
  let drawn = Buffer.alloc(0);
  return (bytes) => {
    if (drawn.length < bytes) drawn = randomFillSync(Buffer.alloc(saltPoolBytes));
    const salt = drawn.subarray(0, bytes);
    drawn = drawn.subarray(bytes);
    return salt;
  };
}
