import type { Database } from 'better-sqlite3';
import { readEntries } from '../../src/store/sqlite/admission.ts';

/** How many spent nonces a database holds. */
export function countNonces(client: Database): number {
  const rows = client.prepare<[], Buffer>('SELECT entries FROM spent_nonces').pluck().all();
  return rows.reduce((sum, entries) => sum + readEntries(entries).length, 0);
}
