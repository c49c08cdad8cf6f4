import { dateOf, laterTimestamp, yearOf } from '../../domain/calendar.ts';
import {
  evidenceHash,
  filingCapReached,
  filingErased,
  nextFilingNumber,
  sequenceOfFiling,
  yearOfFiling,
} from '../../domain/filing.ts';
import { behindMaxS, clockError, findClockFault } from '../../domain/filing-clock.ts';
import { filingCommitment, recordSaltBytes, recordVersion } from '../../domain/filing-record.ts';
import type { LaterRecord } from '../../domain/provenance.ts';
import type { ApiError } from '../../domain/reason.ts';
import { type BusinessTime, realTime } from '../filing-commands.ts';
import type { EvidenceLog } from './evidence-log.ts';
import type { Incidents } from './failure.ts';
import { type Handlers, reads, writesLast } from './handlers.ts';
import type { Outbox } from './parts.ts';
import type { RecordCheck } from './record-check.ts';
import { type FilingRow, type StoredFiling, toFiling } from './stored-filing.ts';

/** A filing to store. */
export type NewFiling = Omit<FilingRow, 'id' | 'previousId' | 'erasedAtS'> & { readonly year: number };

/** A stored TRANSFER record. */
export interface StoredRecord extends LaterRecord {
  /** Unix seconds; the time of its leaf. */
  readonly recordedAtS: number;
  readonly salt: Buffer | null;
  readonly leafIndex: number;
}

/** The tables of filings. The functions wait for nothing. */
export interface FilingTables {
  insert(row: NewFiling): void;
  /** The last number of a year; undefined if it has none. */
  lastOf(year: number): string | undefined;
  /** The last number of a year that a restore skipped, 0 without one. */
  floorOf(year: number): number;
  /** How many filings a caller has of a year. */
  countOf(of: { readonly callerId: number; readonly year: number }): number;
  find(filingNo: string): StoredFiling | undefined;
  /** The TRANSFER records of a filing, in any order. */
  transfersOf(filingNo: string): StoredRecord[];
}

/** How much later the newest leaf may be than a filing that is late. */
const lateMaxS = 60;

/**
 * The time of a record that is made at `at`: that of the newest leaf (`newestS`, Unix seconds) if that is later by up to `maxS`.
 * So the log is in the order of time although each instance has its own clock.
 */
export function timeOfRecord(at: BusinessTime, newestS: number | undefined, maxS = behindMaxS): BusinessTime {
  const behindS = newestS === undefined ? 0 : newestS - unixSeconds(realTime(at));
  return behindS > 0 && behindS <= maxS ? laterBy(at, behindS) : at;
}

const laterBy = ({ atMs, timestamp, real }: BusinessTime, seconds: number): BusinessTime => ({
  atMs: atMs + seconds * 1_000,
  timestamp: laterTimestamp(timestamp, seconds),
  real: real && laterBy(real, seconds),
});

const unixSeconds = ({ atMs }: Pick<BusinessTime, 'atMs'>): number => Math.floor(atMs / 1_000);

/** What the handlers below need. */
interface Parts {
  readonly tables: FilingTables;
  readonly incidents: Incidents;
  readonly log: EvidenceLog;
  readonly clock: { about(nowS: number): number | undefined };
  readonly outbox: Outbox;
  readonly check: RecordCheck;
}

/** Commands of filings that most calls make. Their handlers wait for nothing, which is faster than the others. */
export type HotCommands = 'FileArtwork' | 'GetFiling' | 'GetProvenance';

/** Their handlers. */
export const createFilingHandlers = (parts: Parts): Handlers<HotCommands> => ({
  FileArtwork: createFiling(parts),
  ...createFindHandlers(parts),
});

/** The handler that files an artwork. It reads all that it needs before it changes anything. */
function createFiling(parts: Parts): Handlers['FileArtwork'] {
  const { tables, log, outbox, clock, incidents } = parts;
  const nextNumber = createNumbers(parts);

  function rejectWrongClock(nowS: number, setByS: number): void {
    const fault = findClockFault({ nowS, newestS: log.newestS(), datedS: clock.about(nowS), setByS });
    if (fault === undefined) return;
    incidents.count('clockRejections');
    throw clockError(fault);
  }

  return writesLast(({ artwork, attachments = null, at: calledAt, by, clockSetByS = 0, isLate, cap }) => {
    const at = timeOfRecord(calledAt, log.newestS(), isLate ? lateMaxS : undefined);
    const { timestamp } = realTime(at);
    const filedAtS = unixSeconds(realTime(at));
    rejectWrongClock(filedAtS, clockSetByS);
    const year = yearOf(timestamp);
    const { callerId, caller } = by;
    if (cap !== undefined && tables.countOf({ callerId, year }) >= cap.filings)
      throw filingCapReached(cap.filings, year, cap.endsInS);
    const filingNo = nextNumber(year);
    const recorded = { ...artwork, attachments, filingNo, timestamp, recordVersion };
    const hash = evidenceHash(recorded);
    const logged = log.appendRecord({
      ...({ kind: 'FILING', number: filingNo, sequence: 1, atS: filedAtS } as const),
      saltBytes: recordSaltBytes(attachments),
      commitment: (salt) => filingCommitment({ ...recorded, caller }, salt),
    });
    outbox.add({ type: 'filing.created', callerId, atMs: at.atMs, filingNo });
    tables.insert({ ...recorded, ...logged, hash, callerId, filedAtS, year });
    return { filingNo, hash, timestamp };
  });
}

/** Returns the function that gives the next number of a year. */
function createNumbers({ tables, log, check }: Parts): (year: number) => string {
  /** The last number of a year that was issued. */
  function lastOf(year: number): string | undefined {
    const newest = log.newestFiling();
    if (newest !== undefined && yearOfFiling(newest) === year) return newest;
    // The index has what is written.
    log.write();
    // A filing can be deleted when it is five years old: the year of its number is over, and no more are given out in it.
    const last = tables.lastOf(year);
    check.lastFiling(year, last === undefined ? 0 : sequenceOfFiling(last));
    return last;
  }

  /** The last number of a year that was skipped, according to the log or to a restoration that is not in the log yet. */
  const floorOf = (year: number) => Math.max(tables.floorOf(year), log.index.skippedThrough(year));

  return (year) => nextFilingNumber(year, lastOf(year), floorOf(year));
}

/** Handlers that find one filing. */
function createFindHandlers({ tables, check }: Parts): Handlers<'GetFiling' | 'GetProvenance'> {
  /** The result for a filing that is marked as erased. */
  function erased(row: Pick<FilingRow, 'filingNo' | 'leafIndex'>): ApiError {
    check.erasure(row);
    return filingErased();
  }

  /** The result for a number that is not stored. */
  function absent(filingNo: string): undefined {
    check.absence(filingNo);
  }

  return {
    GetFiling: reads(({ filingNo, owner }) => {
      const row = tables.find(filingNo);
      if (row === undefined) return absent(filingNo);
      if (owner !== undefined && row.callerId !== owner) return undefined;
      if (row.erasedAtS !== null) throw erased(row);
      const { caller, ...checked } = check.filing(row);
      if (caller === null) return absent(filingNo);
      return toFiling({ ...checked, caller });
    }),
    GetProvenance: reads(({ filingNo }) => {
      const source = tables.find(filingNo);
      if (source === undefined) return absent(filingNo);
      if (source.erasedAtS !== null) throw erased(source);
      const { author, timestamp } = check.source(source);
      const submitted = { event: 'SUBMITTED', at: dateOf(timestamp) } as const;
      const transfers = tables.transfersOf(filingNo);
      const later = check.transfers(
        filingNo,
        transfers.sort((one, other) => one.sequence - other.sequence),
      );
      return { filingNo, author, records: [submitted, ...later.map(({ event, at }) => ({ event, at }))] };
    }),
  };
}
