import { and, asc, eq, type InferSelectModel, inArray, isNotNull } from 'drizzle-orm';
import type { LogEventKind } from '../../domain/leaf.ts';
import { logEvent, logKey, logOrigin, numberGap, restoration } from './schema.ts';
import type { Database } from './statement.ts';

type Gap = Pick<InferSelectModel<typeof numberGap>, 'year' | 'after' | 'through'>;

/** The details of log events; each has some of them. */
interface Details extends Gap {
  readonly vkey: string;
  readonly origin: string;
}

/** The faults of tables that log events describe, a line each: keys, origins of the log, and skipped numbers. */
export async function faultsInLogTables(database: Database): Promise<readonly string[]> {
  const all = await database
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

  async function* faultsInKeys(added: Events, retired: Events): AsyncGenerator<string> {
    const additions = new Map(added.map(({ says, timeS }) => [says.vkey, timeS]));
    const ends = new Map(retired.map(({ says, timeS }) => [says.vkey, timeS]));
    for (const key of await database.select().from(logKey).orderBy(asc(logKey.id)).all()) {
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
  async function* faultsInOrigins(
    forks: Events,
    firstKey: Events[number] | undefined,
  ): AsyncGenerator<string> {
    const rows = await database.select().from(logOrigin).orderBy(asc(logOrigin.id)).all();
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

  async function* faultsInGaps(skips: Events): AsyncGenerator<string> {
    const says = new Set(skips.map(({ says: skipped }) => namesOf(skipped)));
    const gaps = await database
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
    ...(await Array.fromAsync(faultsInKeys(added, eventsOf('KEY_RETIRED')))),
    ...(await Array.fromAsync(faultsInOrigins(eventsOf('LOG_FORKED'), added[0]))),
    ...(await Array.fromAsync(faultsInGaps(eventsOf('NUMBERS_SKIPPED')))),
  ];
}

/** The name that a verifier key begins with. */
const nameOfKey = (vkey: string): string => vkey.slice(0, vkey.indexOf('+'));

/** The numbers of a gap. */
function namesOf({ year, after, through }: Gap): string {
  const number = (place: number) => `AS-${year}-${String(place).padStart(6, '0')}`;
  return `the numbers ${number(after + 1)} to ${number(through)}`;
}
