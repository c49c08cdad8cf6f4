import type Sqlite from 'better-sqlite3';
import type { LogEventKind } from '../../domain/leaf.ts';

/** A log event that a row of another table has to agree with. */
interface LogEventRow {
  readonly kind: LogEventKind;
  readonly detail: string;
  readonly timeS: number;
  readonly leafIndex: number;
}

/** The details of log events; each has some of them. */
interface Details extends Gap {
  readonly vkey: string;
  readonly origin: string;
}

interface KeyRow {
  readonly vkey: string;
  readonly addedAtS: number;
  readonly endsAtS: number | null;
  /** 1 if its seed is erased. */
  readonly isRetired: number;
}

interface OriginRow {
  readonly origin: string;
  readonly firstSize: number;
}

interface Gap {
  readonly year: number;
  readonly after: number;
  readonly through: number;
}

/** The faults of tables that log events describe, a line each: keys, origins of the log, and skipped numbers. */
export function faultsInLogTables(client: Sqlite.Database): readonly string[] {
  const all = client.prepare<[], LogEventRow>(selectLogEvents).all();
  const eventsOf = (kind: LogEventKind) =>
    all
      .filter((event) => event.kind === kind)
      .map((event) => ({ ...event, says: JSON.parse(event.detail) as Details }));
  type Events = ReturnType<typeof eventsOf>;

  function* faultsInKeys(added: Events, retired: Events): Generator<string> {
    const additions = new Map(added.map(({ says, timeS }) => [says.vkey, timeS]));
    const ends = new Map(retired.map(({ says, timeS }) => [says.vkey, timeS]));
    for (const { vkey, addedAtS, endsAtS, isRetired } of client.prepare<[], KeyRow>(selectKeys).all()) {
      if (additions.get(vkey) !== addedAtS)
        yield `the evidence log does not say that the key ${vkey} was added then`;
      additions.delete(vkey);
      const end = ends.get(vkey);
      ends.delete(vkey);
      const isAsLogged =
        end === undefined ? isRetired === 0 : isRetired === 1 && (endsAtS ?? Infinity) <= end;
      if (!isAsLogged) yield `the key ${vkey} is retired otherwise than the evidence log says`;
    }
    for (const vkey of additions.keys())
      yield `the evidence log says that the key ${vkey} was added, and the database does not have it`;
    for (const vkey of ends.keys())
      yield `the evidence log says that the key ${vkey} was retired, and the database does not have it`;
  }

  /** The first origin is that of the first key, unless a fork gave it. Each other one is of a fork. */
  function* faultsInOrigins(forks: Events, firstKey: Events[number] | undefined): Generator<string> {
    const rows = client.prepare<[], OriginRow>(selectOrigins).all();
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
    for (const gap of client.prepare<[], Gap>(selectGaps).all()) {
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

const selectLogEvents = `SELECT kind, detail, time_s AS timeS, leaf_index AS leafIndex FROM log_event
  WHERE kind IN ('KEY_ADDED', 'KEY_RETIRED', 'LOG_FORKED', 'NUMBERS_SKIPPED') ORDER BY sequence`;

const selectKeys = `SELECT vkey, added_at_s AS addedAtS, ends_at_s AS endsAtS, sealed_seed = x'' AS isRetired
  FROM log_key ORDER BY id`;

const selectOrigins = 'SELECT origin, first_size AS firstSize FROM log_origin ORDER BY id';

/** The gaps of a restored database become log events when it is first served. */
const selectGaps = `SELECT year, after, through FROM number_gap JOIN restoration ON restoration.id = restoration_id
  WHERE kind = 'FILING' AND served_at_s IS NOT NULL ORDER BY year, after`;

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
