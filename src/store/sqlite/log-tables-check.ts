import type Sqlite from 'better-sqlite3';
import type { LogEventKind } from '../../domain/leaf.ts';

/** An act of the log that a row of another table has to agree with. */
interface AuditEntry {
  readonly kind: LogEventKind;
  readonly detail: string;
  readonly timeS: number;
  readonly leafIndex: number;
}

/** What acts say, each some of it. */
interface Told extends Gap {
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

/** What does not agree with the acts of the log, a line each: keys, names of the log, and numbers that are left out. */
export function faultsInLogTables(client: Sqlite.Database): readonly string[] {
  const acts = client.prepare<[], AuditEntry>(selectLogEvents).all();
  const actsOf = (kind: LogEventKind) =>
    acts.filter((act) => act.kind === kind).map((act) => ({ ...act, told: JSON.parse(act.detail) as Told }));
  type ActsOf = ReturnType<typeof actsOf>;

  function* faultsInKeys(added: ActsOf, retired: ActsOf): Generator<string> {
    const additions = new Map(added.map(({ told, timeS }) => [told.vkey, timeS]));
    const ends = new Map(retired.map(({ told, timeS }) => [told.vkey, timeS]));
    for (const { vkey, addedAtS, endsAtS, isRetired } of client.prepare<[], KeyRow>(selectKeys).all()) {
      if (additions.get(vkey) !== addedAtS)
        yield `the evidence log does not say that the key ${vkey} was added then`;
      additions.delete(vkey);
      const end = ends.get(vkey);
      ends.delete(vkey);
      const isAsTold = end === undefined ? isRetired === 0 : isRetired === 1 && (endsAtS ?? Infinity) <= end;
      if (!isAsTold) yield `the key ${vkey} is retired otherwise than the evidence log says`;
    }
    for (const vkey of additions.keys())
      yield `the evidence log says that the key ${vkey} was added, which is not there`;
    for (const vkey of ends.keys())
      yield `the evidence log says that the key ${vkey} was retired, which is not there`;
  }

  /** The first name is that of the first key, unless a fork gave it; each other one is that of a fork. */
  function* faultsInOrigins(forks: ActsOf, firstKey: ActsOf[number] | undefined): Generator<string> {
    const rows = client.prepare<[], OriginRow>(selectOrigins).all();
    const isNamed = firstKey !== undefined && firstKey.leafIndex < (forks[0]?.leafIndex ?? Infinity);
    const named = isNamed && {
      ...firstKey,
      told: { ...firstKey.told, origin: nameOfKey(firstKey.told.vkey) },
    };
    const givers = [...(named ? [named] : []), ...forks];
    for (const [place, { origin, firstSize }] of rows.entries()) {
      const giver = givers[place];
      const isThen = giver && (giver.leafIndex === firstSize || (firstSize === 0 && giver.leafIndex === 1));
      if (!isThen || giver.told.origin !== origin)
        yield `the evidence log does not say that its name is ${origin} from leaf ${firstSize} on`;
    }
    for (const { told } of givers.slice(rows.length))
      yield `the evidence log says that it goes on as ${told.origin}, and the database does not`;
  }

  function* faultsInGaps(skips: ActsOf): Generator<string> {
    const told = new Set(skips.map(({ told: skipped }) => namesOf(skipped)));
    for (const gap of client.prepare<[], Gap>(selectGaps).all()) {
      const numbers = namesOf(gap);
      if (!told.delete(numbers)) yield `${numbers} are left out, and the evidence log does not say so`;
    }
    for (const numbers of told)
      yield `the evidence log says that ${numbers} are left out, and the database does not`;
  }

  const added = actsOf('KEY_ADDED');
  return [
    ...faultsInKeys(added, actsOf('KEY_RETIRED')),
    ...faultsInOrigins(actsOf('LOG_FORKED'), added[0]),
    ...faultsInGaps(actsOf('NUMBERS_SKIPPED')),
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

/** Those of a restoration that was not served yet become acts when it is. */
const selectGaps = `SELECT year, after, through FROM number_gap JOIN restoration ON restoration.id = restoration_id
  WHERE kind = 'FILING' AND served_at_s IS NOT NULL ORDER BY year, after`;
