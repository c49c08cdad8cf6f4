import { and, asc, between, desc, eq, isNotNull, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { yearOfFiling } from '../../domain/filing.ts';
import { type Incidents, RecordDamaged } from '../engine/failure.ts';
import type { FilingReads, ListedFiling } from '../engine/parts.ts';
import { caller, filing, latestFiling } from '../engine/schema.ts';
import { named } from '../engine/statement.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** A year after all years of filing numbers. */
const endOfYears = 10_000;

/** The id of the filing that a caller filed last in a year; null if there is none. */
export const latestOfYear = (callerId: SQLWrapper, year: SQLWrapper): SQL<number | null> =>
  sql`(SELECT ${latestFiling.filingId} FROM ${latestFiling}
    WHERE ${latestFiling.callerId} = ${callerId} AND ${latestFiling.year} = ${year})`;

/** Prepares the query of how many filings a caller has of a year. */
export function countFilings(
  database: SqliteDatabase,
): (named: { readonly callerId: number; readonly year: number }) => number {
  const { select } = prepare(database, {
    select: database
      .select({ filings: latestFiling.filings })
      .from(latestFiling)
      .where(
        and(
          eq(latestFiling.callerId, sql.placeholder('callerId')),
          eq(latestFiling.year, sql.placeholder('year')),
        ),
      ),
  });
  return ({ callerId, year }) => select.get({ callerId, year })?.filings ?? 0;
}

/** Reads the filings of callers. Those of a caller and year are a chain, in which each names the previous one. */
export function createFilingReads(database: SqliteDatabase, incidents: Incidents): FilingReads {
  const count = countFilings(database);
  const caps = readCaps(database);
  return {
    count: async (of) => count(of),
    newestFirst: createChains(database, incidents),
    caps: async (year, limit) => caps.all({ year, limit }),
  };
}

/** Prepares the query of the platforms that have used the greatest share of their cap on filings. */
function readCaps(database: SqliteDatabase) {
  const filings = sql<number>`coalesce(${latestFiling.filings}, 0)`;
  const { caps } = prepare(database, {
    caps: database
      .select(named({ platform: caller.name, filings, cap: sql<number>`${caller.filingCap}` }))
      .from(caller)
      .leftJoin(
        latestFiling,
        and(eq(latestFiling.callerId, caller.id), eq(latestFiling.year, sql.placeholder('year'))),
      )
      .where(isNotNull(caller.filingCap))
      .orderBy(desc(sql`1.0 * ${filings} / ${caller.filingCap}`), asc(caller.id))
      .limit(sql.placeholder('limit')),
  });
  return caps;
}

function createChains(database: SqliteDatabase, incidents: Incidents): FilingReads['newestFirst'] {
  const { id, filingNo, leafIndex, previousId, erasedAtS, callerId } = filing;
  const { selectLink, selectLatest } = prepare(database, {
    selectLink: database
      .select(named({ id, filingNo, leafIndex, previousId, erasedAtS, callerId }))
      .from(filing)
      .where(eq(filing.id, sql.placeholder('id'))),
    selectLatest: database
      .select(named({ year: latestFiling.year, filingId: latestFiling.filingId }))
      .from(latestFiling)
      .where(
        and(
          eq(latestFiling.callerId, sql.placeholder('owner')),
          between(latestFiling.year, sql.placeholder('oldest'), sql.placeholder('newest')),
        ),
      )
      .orderBy(desc(latestFiling.year))
      .limit(1),
  });

  function broken(owner: number, id: number): RecordDamaged {
    incidents.count('damagedRecords');
    return new RecordDamaged(
      `A filing of caller ${owner} is not what was recorded: row ${id} is missing, or another caller's. The list is not ` +
        'returned: see docs/operate/incidents/record-changed.md.',
    );
  }

  /** A chain from one of its filings on. Throws RecordDamaged where it leads to a row that is not one of its filings. */
  function* chainFrom(first: number | null, owner: number, year: number): Generator<ListedFiling> {
    for (let id = first; id !== null; ) {
      const link = selectLink.get({ id });
      if (link?.callerId !== owner || yearOfFiling(link.filingNo) !== year) throw broken(owner, id);
      yield link;
      id = link.previousId;
    }
  }

  return async function* (owner, year, from) {
    let newest = year ?? endOfYears;
    if (from !== undefined) {
      const last = selectLink.get({ id: from });
      if (last === undefined) throw broken(owner, from);
      if (last.callerId !== owner) return;
      const begun = yearOfFiling(last.filingNo);
      yield* chainFrom(last.previousId, owner, begun);
      newest = begun - 1;
    }
    while (true) {
      const latest = selectLatest.get({ owner, oldest: year ?? 0, newest });
      if (latest === undefined) return;
      yield* chainFrom(latest.filingId, owner, latest.year);
      newest = latest.year - 1;
    }
  };
}
