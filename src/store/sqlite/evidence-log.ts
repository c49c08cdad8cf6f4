import { max } from 'drizzle-orm';
import { createLog, type EvidenceLog } from '../engine/evidence-log.ts';
import type { Incidents } from '../engine/failure.ts';
import { logEvent } from '../engine/schema.ts';
import { named, placeholdersFor } from '../engine/statement.ts';
import { damagedTree } from '../engine/verified-tree.ts';
import { createLeaves } from './leaves.ts';
import { isConstraintFailure } from './sqlite-errors.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** The evidence log of a database. */
export function createEvidenceLog(
  database: SqliteDatabase,
  leaves = createLeaves(database),
  incidents?: Incidents,
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
  return createLog(tables, incidents);
}
