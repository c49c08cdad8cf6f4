import { and, asc, desc, eq, inArray, isNull } from 'drizzle-orm';
import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingNumber, filingSequenceMax, sequenceOfFiling, yearOfFiling } from '../../domain/filing.ts';
import { busiestStretch, randomStretch, safeNumberFloor } from '../../domain/number-gap.ts';
import { DatabaseError } from '../engine/failure.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import {
  escrow,
  escrowChange,
  filing,
  type NumberKind,
  numberGap,
  numberSequence,
  restoration,
} from '../engine/schema.ts';
import type { Database } from '../engine/statement.ts';
import type { Restoration, RestorationCommands } from '../operator-commands.ts';
import { createUsedNumbers } from './filing-numbers.ts';
import type { Parts } from './parts.ts';

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
    RecordServing: writes(async ({ atS }) => {
      for (const gap of await newGaps()) await log.appendLogEvent('NUMBERS_SKIPPED', atS, gap);
      await database.update(restoration).set({ servedAtS: atS }).where(unserved).run();
      return undefined;
    }),
  };
}

/** The last restoration of a database; undefined if there is none. */
export async function lastRestoration(database: Database): Promise<Restoration | undefined> {
  const latest = await database.select().from(restoration).orderBy(desc(restoration.id)).limit(1).get();
  return latest && { servedAtS: latest.servedAtS ?? undefined };
}

/** A restoration to record. */
export interface NewRestoration {
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
 * makes all open orders due. `skipEvents` skips the sequences of events that may have been read since the backup. Returns the
 * skipped numbers. Throws DatabaseError if no gap would be safe, or if `numbersAfter` cannot be the last number. Runs in a
 * transaction of the caller.
 */
export async function recordRestoration(
  database: Database,
  restored: NewRestoration,
  skipEvents: () => Promise<void>,
): Promise<readonly NumberGap[]> {
  const { takenAtS, restoredAtS } = restored;
  const { id } = await database
    .insert(restoration)
    .values({ takenAtS, restoredAtS })
    .returning({ id: restoration.id })
    .get();
  const stretchS = Math.max(restoredAtS - takenAtS, stretchMinS);
  const usedNumbers = createUsedNumbers(database);
  const gaps: NumberGap[] = [];
  for (const year of restored.years) {
    const { filingNumbers, escrowNumbers } = await usedNumbers(year);
    gaps.push(await filingGap(database, year, filingNumbers, stretchS, restored));
    gaps.push(await escrowGap(database, year, escrowNumbers, stretchS, restored));
  }
  const real = gaps.filter(({ after, through }) => through > after);
  for (const gap of real) {
    await database
      .insert(numberGap)
      .values({ ...gap, restorationId: id })
      .run();
    const { kind, year, through: last } = gap;
    if (kind === 'ESCROW')
      await database
        .insert(numberSequence)
        .values({ kind, year, last })
        .onConflictDoUpdate({ target: [numberSequence.kind, numberSequence.year], set: { last } })
        .run();
  }
  await skipEvents();
  await database
    .update(escrow)
    .set({ lookUpAtMs: 0 })
    .where(and(inArray(escrow.state, ['UNPAID', 'FROZEN']), isNull(escrow.review)))
    .run();
  return real;
}

async function filingGap(
  database: Database,
  year: number,
  after: number,
  stretchS: number,
  { numbersAfter, years, random }: NewRestoration,
): Promise<NumberGap> {
  const known = numbersAfter !== undefined && yearOfFiling(numbersAfter) === year;
  const isOver = years.some((other) => other > year);
  const floor = known
    ? sequenceOfFiling(numbersAfter)
    : await safeFilingFloor(database, year, after, stretchS, isOver);
  if (floor < after) {
    throw new DatabaseError(
      `--numbers-after ${numbersAfter} cannot be the last number: ${filingNumber(year, after)} was given out before the backup.`,
    );
  }
  const through = floor + randomStretch(floor, filingSequenceMax, random());
  return { kind: 'FILING', year, after, through };
}

async function safeFilingFloor(
  database: Database,
  year: number,
  after: number,
  stretchS: number,
  isOver: boolean,
): Promise<number> {
  const { filedAtS } = filing;
  const filings = await database.select({ filedAtS }).from(filing).orderBy(asc(filedAtS)).all();
  const times = filings.map((row) => row.filedAtS);
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
async function escrowGap(
  database: Database,
  year: number,
  after: number,
  stretchS: number,
  { random }: NewRestoration,
): Promise<NumberGap> {
  const { changedAtS, position } = escrowChange;
  const opened = await database
    .select({ changedAtS })
    .from(escrowChange)
    .where(eq(position, 1))
    .orderBy(asc(changedAtS))
    .all();
  const times = opened.map((row) => row.changedAtS);
  const safe = safeNumberFloor(after, escrowSequenceMax, busiestStretch(times, stretchS));
  const floor = Math.min(safe, escrowSequenceMax);
  return { kind: 'ESCROW', year, after, through: floor + randomStretch(floor, escrowSequenceMax, random()) };
}
