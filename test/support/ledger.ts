import { join } from 'node:path';
import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';
import { countNonces } from './nonces.ts';

/** What a database holds. */
export interface Holdings {
  readonly filings: number;
  readonly records: number;
  readonly escrows: number;
  /** The sum of the last numbers of orders. */
  readonly orderNumbers: number;
}

/** Reads the database of a service over a connection of its own. */
export interface Ledger {
  holdings(): Holdings;
  /** The calls of a caller in all months. */
  calls(caller: string): number;
  /** The number of stored nonces. */
  nonces(): number;
}

const holdings = `SELECT
  (SELECT count(*) FROM filing) AS filings,
  (SELECT count(*) FROM provenance_record) AS records,
  (SELECT count(*) FROM escrow) AS escrows,
  (SELECT coalesce(sum(last), 0) FROM number_sequence) AS orderNumbers`;

const calls = `SELECT coalesce(sum(calls), 0) FROM usage JOIN caller ON caller.id = caller_id WHERE name = ?`;

/** Opens the ledger of a service; closed after the test. */
export function openLedger(test: Pick<TestContext, 'after'>, { dataDir }: { dataDir: string }): Ledger {
  const client = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  test.after(() => client.close());
  return {
    holdings: () => client.prepare(holdings).get() as Holdings,
    calls: (caller) => client.prepare(calls).pluck().get(caller) as number,
    nonces: () => countNonces(client),
  };
}
