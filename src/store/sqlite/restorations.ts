import { and, asc, desc, eq, isNull, max, sql } from 'drizzle-orm';
import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { restoredEventsGap } from '../../domain/event.ts';
import { filingNumber, filingSequenceMax, sequenceOfFiling, yearOfFiling } from '../../domain/filing.ts';
import { busiestStretch, randomStretch, safeNumberFloor } from '../../domain/number-gap.ts';
import type { Restoration, RestorationCommands } from '../operator-commands.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { DatabaseError } from './location.ts';
import { everybody } from './outbox.ts';
import type { Parts } from './parts.ts';
import { filing, type NumberKind, numberGap, numberSequence, restoration } from './schema.ts';
import type { Database } from './statement.ts';

/** Handlers of restorations. */
export function createRestorationHandlers({ database, log }: Parts): Handlers<keyof RestorationCommands> {
  const unserved = isNull(restoration.servedAtS);
  const newGaps = () =>
    database
      .select({ year: numberGap.year, after: numberGap.after, through: numberGap.through })
      .from(numberGap)
      .innerJoin(restoration, eq(restoration.id, numberGap.restorationId))
      .where(and(unserved, eq(numberGap.kind, 'FILING')))
      .orderBy(asc(numberGap.year), asc(numberGap.after))
      .all();

  return {
    FindRestoration: reads(() => lastRestoration(database)),
    RecordServing: writes(({ atS }) => {
      for (const gap of newGaps()) log.appendLogEvent('NUMBERS_SKIPPED', atS, gap);
      database.update(restoration).set({ servedAtS: atS }).where(unserved).run();
      return undefined;
    }),
  };
}

/** The last restoration of a database; undefined if there is none. */
export function lastRestoration(database: Database): Restoration | undefined {
  const latest = database.select().from(restoration).orderBy(desc(restoration.id)).limit(1).get();
  return latest && { servedAtS: latest.servedAtS ?? undefined };
}

/** The last skipped number of each year. Gaps are made only before a store is opened. */
export function numberFloors(database: Database, kind: NumberKind): ReadonlyMap<number, number> {
  const rows = database
    .select({ year: numberGap.year, through: max(numberGap.through) })
    .from(numberGap)
    .where(eq(numberGap.kind, kind))
    .groupBy(numberGap.year)
    .all();
  return new Map(rows.map(({ year, through }) => [year, through ?? 0]));
}

/** A restoration to record. */
interface NewRestoration {
  readonly takenAtS: number;
  readonly restoredAtS: number;
  /** The years whose numbers may have been issued since the backup. */
  readonly years: readonly number[];
  /** The last filing number that was issued, if the operator knows it. */
  readonly numbersAfter: string | undefined;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Skipped numbers of a year. */
export interface NumberGap {
  readonly kind: NumberKind;
  readonly year: number;
  /** The last number before the gap. */
  readonly after: number;
  readonly through: number;
}

/** The shortest period to assume, because the clocks of two machines may differ. */
const stretchMinS = 86_400;

/**
 * Records that a database was restored: skips all numbers that may have been issued since the backup and some more at random, and
 * makes all open orders due. Returns the skipped numbers. Throws DatabaseError if no gap would be safe, or if `numbersAfter`
 * cannot be the last number.
 */
export function recordRestoration(database: Database, restored: NewRestoration): readonly NumberGap[] {
  const { takenAtS, restoredAtS } = restored;
  return database.$client.transaction(() => {
    const { id } = database
      .insert(restoration)
      .values({ takenAtS, restoredAtS })
      .returning({ id: restoration.id })
      .get();
    const stretchS = Math.max(restoredAtS - takenAtS, stretchMinS);
    const gaps = restored.years.flatMap((year) => [
      filingGap(database, year, stretchS, restored),
      escrowGap(database, year, stretchS, restored),
    ]);
    const real = gaps.filter(({ after, through }) => through > after);
    for (const gap of real)
      database
        .insert(numberGap)
        .values({ ...gap, restorationId: id })
        .run();
    for (const { kind, year, through: last } of real)
      if (kind === 'ESCROW') setEscrowSequence(database, year, last);
    skipEvents(database);
    database.$client.exec(
      "UPDATE escrow SET look_up_at_ms = 0 WHERE state IN ('UNPAID', 'FROZEN') AND review IS NULL",
    );
    return real;
  })();
}

const addHead = 'INSERT OR IGNORE INTO event_head (caller_id, sequence, position)';

/** Skips the sequences of events that may have been read since the backup, so that none is used for another event. */
function skipEvents(database: Database): void {
  const { $client: client } = database;
  // Callers that were added after the backup are not known here. All known ones continue after the gap.
  client.exec(`${addHead} SELECT id, 0, 0 FROM caller`);
  client.prepare(`${addHead} VALUES (?, 0, 0)`).run(everybody);
  client.prepare('UPDATE event_head SET sequence = sequence + ?').run(restoredEventsGap);
  client
    .prepare('UPDATE event_head SET position = position + ? WHERE caller_id = ?')
    .run(restoredEventsGap, everybody);
}

function filingGap(
  database: Database,
  year: number,
  stretchS: number,
  { numbersAfter, years, random }: NewRestoration,
): NumberGap {
  const after = lastFiling(database, year);
  const known = numbersAfter !== undefined && yearOfFiling(numbersAfter) === year;
  const isOver = years.some((other) => other > year);
  const floor = known
    ? sequenceOfFiling(numbersAfter)
    : safeFilingFloor(database, year, after, stretchS, isOver);
  if (floor < after) {
    throw new DatabaseError(
      `--numbers-after ${numbersAfter} cannot be the last number: ${filingNumber(year, after)} was given out before the backup.`,
    );
  }
  const through = floor + randomStretch(floor, filingSequenceMax, random());
  return { kind: 'FILING', year, after, through };
}

function safeFilingFloor(
  database: Database,
  year: number,
  after: number,
  stretchS: number,
  isOver: boolean,
): number {
  const times = timesOf(database, 'SELECT filed_at_s FROM filing ORDER BY filed_at_s');
  const floor = safeNumberFloor(after, filingSequenceMax, busiestStretch(times, stretchS));
  if (floor < filingSequenceMax) return floor;
  // No numbers are issued for a past year.
  if (isOver) return filingSequenceMax;
  throw new DatabaseError(
    `${year} has too few numbers left to leave out all that may have been given out since the backup, which ends with ` +
      `${filingNumber(year, after)}: find the last number that was given out, and name it with --numbers-after.`,
  );
}

/** If no gap is safe, orders fail with ESCROW_NUMBERS_EXHAUSTED for the rest of the year. */
function escrowGap(
  database: Database,
  year: number,
  stretchS: number,
  { random }: NewRestoration,
): NumberGap {
  const after = database.select().from(numberSequence).where(eq(numberSequence.year, year)).get()?.last ?? 0;
  const times = timesOf(
    database,
    'SELECT changed_at_s FROM escrow_change WHERE position = 1 ORDER BY changed_at_s',
  );
  const safe = safeNumberFloor(after, escrowSequenceMax, busiestStretch(times, stretchS));
  const floor = Math.min(safe, escrowSequenceMax);
  return { kind: 'ESCROW', year, after, through: floor + randomStretch(floor, escrowSequenceMax, random()) };
}

function setEscrowSequence(database: Database, year: number, last: number): void {
  database
    .insert(numberSequence)
    .values({ kind: 'ESCROW', year, last })
    .onConflictDoUpdate({ target: [numberSequence.kind, numberSequence.year], set: { last } })
    .run();
}

function timesOf(database: Database, query: string): readonly number[] {
  return database.$client.prepare<[], number>(query).pluck().all();
}

/** The last number of a year that was issued or skipped. */
function lastFiling(database: Database, year: number): number {
  const { last } = database
    .select({ last: max(filing.filingNo) })
    .from(filing)
    .where(sql`${filing.filingNo} LIKE ${`AS-${year}-%`}`)
    .get() ?? { last: null };
  const floor = numberFloors(database, 'FILING').get(year) ?? 0;
  return Math.max(last === null ? 0 : sequenceOfFiling(last), floor);
}
