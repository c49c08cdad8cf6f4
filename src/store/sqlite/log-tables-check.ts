import { and, asc, eq, type InferSelectModel, inArray, isNotNull, sql } from 'drizzle-orm';
import { yearOfFiling } from '../../domain/filing.ts';
import type { LogEventKind } from '../../domain/leaf.ts';
import {
  filing,
  latestFiling,
  logEvent,
  logKey,
  logOrigin,
  numberGap,
  restoration,
} from '../engine/schema.ts';
import { named } from '../engine/statement.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

type Gap = Pick<InferSelectModel<typeof numberGap>, 'year' | 'after' | 'through'>;

/** The details of log events; each has some of them. */
interface Details extends Gap {
  readonly vkey: string;
  readonly origin: string;
}

/** The faults of tables that log events describe, a line each: keys, origins of the log, and skipped numbers. */
export function faultsInLogTables(database: SqliteDatabase): readonly string[] {
  const all = database
    .select()
    .from(logEvent)
    .where(inArray(logEvent.kind, ['KEY_ADDED', 'KEY_RETIRED', 'LOG_FORKED', 'NUMBERS_SKIPPED']))
    .orderBy(asc(logEvent.sequence))
    .all();
  const eventsOf = (kind: LogEventKind) =>
    all
      .filter((event) => event.kind === kind)
      .map((event) => ({ ...event, says: JSON.parse(event.detail) as Details }));
  type Events = ReturnType<typeof eventsOf>;

  function* faultsInKeys(added: Events, retired: Events): Generator<string> {
    const additions = new Map(added.map(({ says, timeS }) => [says.vkey, timeS]));
    const ends = new Map(retired.map(({ says, timeS }) => [says.vkey, timeS]));
    for (const key of database.select().from(logKey).orderBy(asc(logKey.id)).all()) {
      const { vkey, addedAtS, endsAtS, sealedSeed } = key;
      const isRetired = sealedSeed.length === 0;
      if (additions.get(vkey) !== addedAtS)
        yield `the evidence log does not say that the key ${vkey} was added then`;
      additions.delete(vkey);
      const end = ends.get(vkey);
      ends.delete(vkey);
      const isAsLogged = end === undefined ? !isRetired : isRetired && (endsAtS ?? Infinity) <= end;
      if (!isAsLogged) yield `the key ${vkey} is retired otherwise than the evidence log says`;
    }
    for (const vkey of additions.keys())
      yield `the evidence log says that the key ${vkey} was added, and the database does not have it`;
    for (const vkey of ends.keys())
      yield `the evidence log says that the key ${vkey} was retired, and the database does not have it`;
  }

  /** The first origin is that of the first key, unless a fork gave it. Each other one is of a fork. */
  function* faultsInOrigins(forks: Events, firstKey: Events[number] | undefined): Generator<string> {
    const rows = database.select().from(logOrigin).orderBy(asc(logOrigin.id)).all();
    const isNamed = firstKey !== undefined && firstKey.leafIndex < (forks[0]?.leafIndex ?? Infinity);
    const named = isNamed && {
      ...firstKey,
      says: { ...firstKey.says, origin: nameOfKey(firstKey.says.vkey) },
    };
    const givers = [...(named ? [named] : []), ...forks];
    for (const [place, { origin, firstSize }] of rows.entries()) {
      const giver = givers[place];
      const isThen = giver && (giver.leafIndex === firstSize || (firstSize === 0 && giver.leafIndex === 1));
      if (!isThen || giver.says.origin !== origin)
        yield `the evidence log does not say that its name is ${origin} from leaf ${firstSize} on`;
    }
    for (const { says } of givers.slice(rows.length))
      yield `the evidence log says that it continues as ${says.origin}, and the database does not`;
  }

  function* faultsInGaps(skips: Events): Generator<string> {
    const says = new Set(skips.map(({ says: skipped }) => namesOf(skipped)));
    const gaps = database
      .select({ year: numberGap.year, after: numberGap.after, through: numberGap.through })
      .from(numberGap)
      .innerJoin(restoration, eq(restoration.id, numberGap.restorationId))
      // The gaps of a restored database become log events when it is first served.
      .where(and(eq(numberGap.kind, 'FILING'), isNotNull(restoration.servedAtS)))
      .orderBy(asc(numberGap.year), asc(numberGap.after))
      .all();
    for (const gap of gaps) {
      const numbers = namesOf(gap);
      if (!says.delete(numbers)) yield `${numbers} were skipped, and the evidence log does not say so`;
    }
    for (const numbers of says)
      yield `the evidence log says that ${numbers} were skipped, and the database does not`;
  }

  const added = eventsOf('KEY_ADDED');
  return [
    ...faultsInKeys(added, eventsOf('KEY_RETIRED')),
    ...faultsInOrigins(eventsOf('LOG_FORKED'), added[0]),
    ...faultsInGaps(eventsOf('NUMBERS_SKIPPED')),
  ];
}

/** The name that a verifier key begins with. */
const nameOfKey = (vkey: string): string => vkey.slice(0, vkey.indexOf('+'));

/** The numbers of a gap. */
function namesOf({ year, after, through }: Gap): string {
  const number = (place: number) => `AS-${year}-${String(place).padStart(6, '0')}`;
  return `the numbers ${number(after + 1)} to ${number(through)}`;
}

/**
 * The faults of the chains of filings (see filing-chains.ts), a line each. Each filing names the caller's previous one of its year,
 * and latest_filing has the last one. No leaf commits to the caller of a filing, but a filing that is moved to another caller breaks
 * the chains of both.
 */
export function* faultsInChains(database: SqliteDatabase): Generator<string> {
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
