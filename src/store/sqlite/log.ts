import { asc, gte, max, sql } from 'drizzle-orm';
import { completedBy, type Subtree } from '../../domain/merkle.ts';
import { createLog, type EvidenceLog } from '../engine/evidence-log.ts';
import type { Incidents } from '../engine/failure.ts';
import { dataIn, hashIn, rowsOf, type StoredLeaf } from '../engine/leaves.ts';
import { logEvent, logLeaf } from '../engine/schema.ts';
import { named, placeholdersFor } from '../engine/statement.ts';
import { damagedTree } from '../engine/verified-tree.ts';
import { isConstraintFailure } from './sqlite-errors.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** The evidence log of a database. */
export function createEvidenceLog(
  database: SqliteDatabase,
  leaves = createLeaves(database),
  incidents?: Incidents,
  isSandbox?: boolean,
): EvidenceLog {
  const { insert, select } = prepare(database, {
    insert: database.insert(logEvent).values(placeholdersFor(logEvent)),
    select: database.select(named({ events: max(logEvent.sequence) })).from(logEvent),
  });
  const tables = {
    leaves,
    append: (size: number, stored: Parameters<typeof leaves.append>[1]) => {
      try {
        leaves.append(size, stored);
      } catch (error) {
        if (!isConstraintFailure(error)) throw error;
        // Somebody changed the table: this process alone appends to it.
        incidents?.count('damagedRecords');
        throw damagedTree(`leaf ${size} cannot follow its last one`);
      }
    },
    events: () => select.get()?.events ?? 0,
    insertEvent: (row: typeof logEvent.$inferSelect) => void insert.run({ ...row }),
  };
  return createLog(tables, incidents, isSandbox);
}

/** The leaves of a database, which may be appended to. */
export type SqliteLeaves = ReturnType<typeof createLeaves>;

/** The leaves of the evidence log in its table, and the hashes of its complete subtrees. */
export function createLeaves(database: SqliteDatabase) {
  const { id, first, data, hashes } = logLeaf;
  /** The row of a leaf is the first one that ends with it or with a later leaf. */
  const isFrom = gte(id, sql.placeholder('index'));
  const { insert, selectLast, selectData, selectHashes } = prepare(database, {
    insert: database.insert(logLeaf).values(placeholdersFor(logLeaf)),
    selectLast: database.select(named({ last: max(id) })).from(logLeaf),
    selectData: database.select({ id, first, data }).from(logLeaf).where(isFrom).orderBy(asc(id)),
    selectHashes: database.select({ id, first, hashes }).from(logLeaf).where(isFrom).orderBy(asc(id)),
  });

  function findHashes({ level, place }: Subtree, width: number): readonly Uint8Array[] {
    const found: Uint8Array[] = [];
    let row: ReturnType<typeof selectHashes.get>;
    while (found.length < width) {
      const index = completedBy({ level, place: place + found.length });
      if (row === undefined || row.id < index) row = selectHashes.get({ index });
      const hash = row && hashIn(row, index, level);
      if (hash === undefined) break;
      found.push(hash);
    }
    return found;
  }

  return {
    size: (): number => (selectLast.get()?.last ?? -1) + 1,
    dataFrom: (from: number, width: number): readonly string[] => {
      const found: string[] = [];
      for (const row of selectData.iterate({ index: from })) {
        const all = dataIn(row);
        const begin = from + found.length - row.first;
        if (all === undefined || begin < 0) break;
        found.push(...all.slice(begin, begin + width - found.length));
        if (found.length === width) break;
      }
      return found;
    },
    findHashes,
    /** Appends leaves to the first `size` leaves. */
    append: (size: number, leaves: readonly StoredLeaf[]) => {
      for (const row of rowsOf(size, leaves)) insert.run({ ...row });
    },
  };
}
