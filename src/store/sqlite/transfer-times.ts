import type Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { timeOfLeaf } from '../../domain/leaf.ts';
import { createLeaves } from './leaves.ts';

interface Row {
  readonly filingNo: string;
  readonly position: number;
  readonly recordedAtS: number;
  readonly leafIndex: number;
}

/**
 * Gives each TRANSFER record the time of its leaf. Before schema 18 it had that of the clock, which may have been behind the
 * newest leaf. Inside the transaction of the migration.
 */
export function dateTransfersByLeaves(client: Sqlite.Database): void {
  const leaves = createLeaves(drizzle({ client }));
  const other: (Row & { readonly leafTimeS: number })[] = [];
  for (const row of client.prepare<[], Row>(selectTransfers).iterate()) {
    const [leaf] = leaves.dataFrom(row.leafIndex, 1);
    const leafTimeS = leaf === undefined ? row.recordedAtS : timeOfLeaf(leaf);
    if (leafTimeS !== row.recordedAtS) other.push({ ...row, leafTimeS });
  }
  if (other.length === 0) return;
  const trigger = client.prepare<[], string>(selectTrigger).pluck().get() ?? '';
  const update = client.prepare(
    'UPDATE provenance_record SET recorded_at_s = ? WHERE filing_no = ? AND position = ?',
  );
  client.exec('DROP TRIGGER provenance_record_never_changes');
  for (const { leafTimeS, filingNo, position } of other) update.run(leafTimeS, filingNo, position);
  client.exec(trigger);
}

const selectTransfers = `SELECT filing_no AS filingNo, position, recorded_at_s AS recordedAtS, leaf_index AS leafIndex
  FROM provenance_record WHERE leaf_index IS NOT NULL`;

const selectTrigger = "SELECT sql FROM sqlite_schema WHERE name = 'provenance_record_never_changes'";
