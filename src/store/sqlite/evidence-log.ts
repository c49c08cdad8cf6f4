import { randomFillSync } from 'node:crypto';
import { desc, sql } from 'drizzle-orm';
import {
  actLeafData,
  commitmentTo,
  type LogActDetail,
  type LogActKind,
  type RecordLeaf,
  recordLeafData,
  saltBytes,
  timeOfLeaf,
} from '../../domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash, subtreesOf, type TreeHead } from '../../domain/merkle.ts';
import type { Database } from './database.ts';
import { logAct, logLeaf } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';
import { createSubtrees } from './subtrees.ts';

/** Appends to the evidence log, inside the transaction that stores what the leaves are about. */
export interface EvidenceLog {
  /** Appends a record that was hashed: what to keep beside it. */
  appendRecord(
    record: Pick<RecordLeaf, 'kind' | 'number' | 'sequence'> & {
      /** Unix seconds. A leaf is never older than the one before it. */
      readonly atS: number;
      /** 64 hex digits. */
      readonly evidenceHash: string;
      /** Whether it was there before the log was begun: its time stays as it is. */
      readonly isAdopted?: boolean;
    },
  ): LeafPlace;
  /** Appends something that happened to the log itself. */
  appendAct(kind: LogActKind, atS: number, detail: LogActDetail): void;
  /** When the newest leaf was made, Unix seconds; undefined if there is none. */
  newestS(): number | undefined;
  /** How many acts of the log there are that are written. */
  acts(): number;
  /** Writes what was appended; behind the effect that did, so that the effects behind it find it in the tables. */
  write(): void;
  /** Forgets what was appended and not written: its effect was undone. */
  drop(): void;
  committed(): void;
  rolledBack(): void;
}

/** What a record keeps of its leaf. */
export interface LeafPlace {
  readonly salt: Buffer;
  readonly leafIndex: number;
}

/** Salts that are drawn at a time: the system is asked less often. */
const saltsAtOnce = 128;

/** A leaf that is not written yet. */
interface Pending {
  readonly data: string;
  readonly timeS: number;
  /** The row of an act. */
  readonly act?: { readonly sequence: number; readonly kind: LogActKind; readonly detail: string };
}

/** The tree as it is in the tables. */
interface Written {
  readonly tree: TreeHead;
  readonly acts: number;
  readonly newestS: number | undefined;
}

/** The evidence log of a database. */
export function createEvidenceLog(database: Database): EvidenceLog {
  const insertLeaf = prepareRaw(database, database.insert(logLeaf).values(placeholdersFor(logLeaf)));
  const insertAct = prepareRaw(database, database.insert(logAct).values(placeholdersFor(logAct)));
  const selectLast = prepareRaw<{ id: number; data: string }>(
    database,
    database.select({ id: logLeaf.id, data: logLeaf.data }).from(logLeaf).orderBy(desc(logLeaf.id)).limit(1),
  );
  const selectActs = prepareRaw<{ acts: number }>(
    database,
    database.select({ acts: sql<number>`coalesce(max(${logAct.sequence}), 0)`.as('acts') }).from(logAct),
  );
  const subtrees = createSubtrees(database);
  const newSalt = createSalts();
  let written: Written = { tree: emptyTree, acts: 0, newestS: undefined };
  /** The same, as of the last transaction that was committed. */
  let durable = written;
  /** Whether this transaction has looked if another process appended something. */
  let isCurrent = false;
  const pending: Pending[] = [];

  function current(): Written {
    if (isCurrent) return written;
    isCurrent = true;
    const last = selectLast.get({});
    const size = last === undefined ? 0 : last.id + 1;
    if (last === undefined || size !== written.tree.size) written = read(size, last?.data);
    return written;
  }

  function read(size: number, last: string | undefined): Written {
    const roots = subtreesOf({ start: 0, end: size }).map((subtree) => subtrees.hashOf(subtree));
    return {
      tree: { size, roots },
      acts: selectActs.get({})?.acts ?? 0,
      newestS: last === undefined ? undefined : timeOfLeaf(last),
    };
  }

  const newestS = () => pending.at(-1)?.timeS ?? current().newestS;

  function push(leaf: Pending): number {
    pending.push(leaf);
    return written.tree.size + pending.length - 1;
  }

  function pushAct(kind: LogActKind, timeS: number, detail: LogActDetail): void {
    const sequence = current().acts + pending.filter(({ act }) => act !== undefined).length + 1;
    const act = { sequence, kind, detail: JSON.stringify(detail) };
    push({ data: actLeafData({ kind, sequence, timeS, detail }), timeS, act });
  }

  /** The time of the next leaf; the first of all is that the log was begun. */
  function begun(atS: number): number {
    const isEmpty = current().tree.size + pending.length === 0;
    if (isEmpty) pushAct('LOG_BEGUN', atS, { adopted: 0 });
    return Math.max(atS, newestS() ?? atS);
  }

  return {
    appendRecord: ({ kind, number, sequence, atS, evidenceHash, isAdopted = false }) => {
      const timeS = isAdopted ? atS : begun(atS);
      const salt = newSalt();
      const commitment = commitmentTo(evidenceHash, salt);
      const data = recordLeafData({ kind, number, sequence, timeS, commitment });
      return { salt, leafIndex: push({ data, timeS }) };
    },
    appendAct: (kind, atS, detail) => {
      const laterS = begun(atS);
      // A time that an operator accepts is the one that may be behind those before it.
      pushAct(kind, kind === 'CLOCK_ACCEPTED' ? atS : laterS, detail);
    },
    newestS,
    acts: () => current().acts,
    write: () => {
      if (pending.length === 0) return;
      let { tree, acts } = written;
      for (const { data, timeS, act } of pending) {
        const { size: leafIndex } = tree;
        const appended = appendLeaf(tree, leafHash(data));
        insertLeaf.run({ id: leafIndex, data, hashes: Buffer.concat(appended.completed) });
        if (act !== undefined) {
          insertAct.run({ ...act, timeS, leafIndex });
          acts = act.sequence;
        }
        tree = appended.tree;
      }
      written = { tree, acts, newestS: pending.at(-1)?.timeS };
      pending.length = 0;
    },
    drop: () => {
      pending.length = 0;
    },
    committed: () => {
      durable = written;
      isCurrent = false;
    },
    rolledBack: () => {
      written = durable;
      pending.length = 0;
      isCurrent = false;
    },
  };
}

/** Draws salts. */
function createSalts(): () => Buffer {
  let drawn = Buffer.alloc(0);
  return () => {
    if (drawn.length === 0) drawn = randomFillSync(Buffer.alloc(saltBytes * saltsAtOnce));
    const salt = drawn.subarray(0, saltBytes);
    drawn = drawn.subarray(saltBytes);
    return salt;
  };
}
