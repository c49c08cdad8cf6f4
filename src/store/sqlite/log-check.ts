import { asc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { yearOfFiling } from '../../domain/filing.ts';
import { faultsInLog as faultsInLogOf, faultsMax } from '../engine/log-check.ts';
import { filing, latestFiling } from '../engine/schema.ts';
import { named } from '../engine/statement.ts';
import { openToRead } from './reading.ts';
import { forHandlers, prepare, type SqliteDatabase } from './statement.ts';

/** Verifies the evidence log of a database, and the chains of its filings. Returns the faults, a line each. */
export async function faultsInLog(file: string): Promise<readonly string[]> {
  const client = openToRead(file);
  try {
    return await faultsInOpenLog(drizzle({ client }));
  } finally {
    client.close();
  }
}

/** The same for an open database, which a server may write to meanwhile. */
export async function faultsInOpenLog(database: SqliteDatabase): Promise<readonly string[]> {
  const { $client: client } = database;
  client.exec('BEGIN');
  try {
    return await faultsInLogOf(forHandlers(database), () => faultsInChains(database).take(faultsMax));
  } finally {
    client.exec('ROLLBACK');
  }
}

/**
 * The faults of the chains of filings (see filing-chains.ts), a line each. Each filing names the caller's previous one of its year,
 * and latest_filing has the last one. No leaf commits to the caller of a filing, but a filing that is moved to another caller breaks
 * the chains of both.
 */
function* faultsInChains(database: SqliteDatabase): Generator<string> {
  const { id, filingNo, callerId, previousId } = filing;
  const { byId, links, latest } = prepare(database, {
    byId: database
      .select(named({ filingNo }))
      .from(filing)
      .where(eq(id, sql.placeholder('id'))),
    links: database.select(named({ id, filingNo, callerId, previousId })).from(filing).orderBy(asc(filingNo)),
    latest: database
      .select(
        named({ caller: latestFiling.callerId, year: latestFiling.year, filingId: latestFiling.filingId }),
      )
      .from(latestFiling),
  });
  const name = (id: number | null) =>
    id === null ? 'none' : (byId.get({ id })?.filingNo ?? 'a filing that does not exist');
  /** The last filing of each chain, by caller and year. */
  const lastOf = new Map<string, number>();
  for (const link of links.iterate()) {
    const chain = `${link.callerId} ${yearOfFiling(link.filingNo)}`;
    const expected = lastOf.get(chain) ?? null;
    lastOf.set(chain, link.id);
    if (link.previousId !== expected)
      yield `${link.filingNo} names ${name(link.previousId)} as the filing of its caller before it, which is ${name(expected)}`;
  }
  for (const { caller, year, filingId } of latest.iterate()) {
    const chain = `${caller} ${year}`;
    const last = lastOf.get(chain) ?? null;
    lastOf.delete(chain);
    if (filingId !== last)
      yield `${name(filingId)} is noted as the last filing of caller and year ${chain}, which is ${name(last)}`;
  }
  for (const [chain, last] of lastOf)
    yield `${name(last)} is not noted as the last filing of caller and year ${chain}`;
}
