import type Sqlite from 'better-sqlite3';

/**
 * The faults of the chains of filings (see filing-chains.ts), a line each. Each filing names the caller's previous one of its year,
 * and latest_filing has the last one. No leaf commits to the caller of a filing, but a filing that is moved to another caller breaks
 * the chains of both.
 */
export function* faultsInChains(client: Sqlite.Database): Generator<string> {
  const nameOf = client.prepare<[number | null], string>('SELECT filing_no FROM filing WHERE id = ?').pluck();
  const name = (id: number | null) =>
    id === null ? 'none' : (nameOf.get(id) ?? `a filing that does not exist`);
  const lastOf = new Map<string, number>();
  for (const { id, filingNo, chain, previousId } of client.prepare<[], Link>(selectLinks).iterate()) {
    const expected = lastOf.get(chain) ?? null;
    lastOf.set(chain, id);
    if (previousId === expected) continue;
    yield `${filingNo} names ${name(previousId)} as the filing of its caller before it, which is ${name(expected)}`;
  }
  for (const { chain, filingId } of client.prepare<[], Latest>(selectLatest).iterate()) {
    const last = lastOf.get(chain) ?? null;
    lastOf.delete(chain);
    if (filingId === last) continue;
    yield `${name(filingId)} is noted as the last filing of caller and year ${chain}, which is ${name(last)}`;
  }
  for (const [chain, last] of lastOf)
    yield `${name(last)} is not noted as the last filing of caller and year ${chain}`;
}

interface Link {
  readonly id: number;
  readonly filingNo: string;
  /** The caller and the year of the chain. */
  readonly chain: string;
  readonly previousId: number | null;
}

interface Latest {
  readonly chain: string;
  readonly filingId: number;
}

const selectLinks = `SELECT id, filing_no AS filingNo, caller_id || ' ' || CAST(substr(filing_no, 4, 4) AS integer) AS chain,
  previous_id AS previousId FROM filing ORDER BY filing_no`;

const selectLatest = `SELECT caller_id || ' ' || year AS chain, filing_id AS filingId FROM latest_filing`;
