import { filingSequenceMax, retentionYears, sequenceOfFiling, yearOfFiling } from '../../domain/filing.ts';
import { type LeafSpan, readLeafRanges } from '../../domain/leaf.ts';
import type { Leaves } from './leaves.ts';
import type { VerifiedTree } from './verified-tree.ts';

/** Leaves that are read at a time: those of a tile. */
const leavesAtOnce = 256;

/** Faults that are kept in words. */
const faultsMax = 10;

/**
 * What the evidence log says of filings, kept in memory: which numbers it has, how many records each filing has, and what was
 * erased. It is read from leaves that are in the verified tree, so a row that is deleted, or marked as erased, is noticed.
 */
export interface LogIndex {
  /** Reads so many leaves more, at most. */
  scan(leavesMax: number): void;
  /** How many leaves were read. */
  scanned(): number;
  /** Leaves in the tables that are not those of the tree: the first of them in words, and how many they are. */
  faults(): { readonly count: number; readonly first: readonly string[] };
  /** Takes note of a leaf that was appended. */
  appended(index: number, leaf: NotedLeaf): void;
  /** The last number of a year, 0 if it has none. Like all questions, it first reads what was not read yet. */
  lastOf(year: number): number;
  /** Whether a filing of that number was recorded. */
  hasFiling(filingNo: string): boolean;
  /** How many filings were recorded between two numbers, themselves not counted. */
  filingsBetween(below: string, above: string): number;
  /** How many TRANSFER records a filing has. */
  transfersOf(filingNo: string): number;
  /** The last number of a year that was left out, 0 if none was. */
  skippedThrough(year: number): number;
  /**
   * The latest time that the leaf of an erased record can have, Unix seconds: an event of the log says that its record was
   * erased. Undefined if none does.
   */
  erasedBefore(leafIndex: number): number | undefined;
  /** All that it knows, as JSON, to begin with after a restart. */
  save(): string;
  /** Begins with what was saved as of so many leaves. Nothing if something was read already. */
  load(saved: string): void;
  committed(): void;
  rolledBack(): void;
}

/** What of a leaf the index needs. */
export interface NotedLeaf {
  readonly kind: string;
  readonly number: string;
  /** Unix seconds. */
  readonly time: number;
  /** Of an event of the log. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined;
}

/** Numbers that were left out. */
interface Skipped {
  readonly year: number;
  readonly after: number;
  readonly through: number;
}

/** Leaves whose records were erased together. */
interface Erased {
  /** The latest time that they can have, Unix seconds. */
  readonly before: number;
  /** In ascending order. */
  readonly spans: readonly LeafSpan[];
}

/** All that the index knows, as it is saved. */
interface Saved {
  readonly scanned: number;
  readonly years: readonly (readonly [number, number])[];
  readonly transfers: readonly (readonly [string, number])[];
  readonly skipped: readonly Skipped[];
  readonly erased: readonly Erased[];
}

/** Less than the retention can ever be, in seconds. */
const retentionMinS = retentionYears * 365 * 86_400;

const filingForm = /^AS-\d{4}-\d{6}$/;

/** The index of a log; nothing is read before it is needed. */
export function createLogIndex(leaves: Leaves, tree: VerifiedTree, countFault: () => void): LogIndex {
  let scanned = 0;
  let years = new Map<number, number>();
  let transfers = new Map<string, number>();
  let skipped: Skipped[] = [];
  let erased: Erased[] = [];
  /** What takes back that of the transaction, the last first. */
  const undo: (() => void)[] = [];
  let faultCount = 0;
  const faults: string[] = [];

  /** Takes note of the next leaf; what takes that back. */
  function note({ kind, number, time, detail }: NotedLeaf): () => void {
    if (kind === 'FILING') {
      const year = yearOfFiling(number);
      const last = years.get(year) ?? 0;
      years.set(year, Math.max(last, sequenceOfFiling(number)));
      return () => void years.set(year, last);
    }
    if (kind === 'NUMBERS_SKIPPED') {
      skipped.push(detail as unknown as Skipped);
      return () => void skipped.pop();
    }
    if (kind === 'RECORDS_ERASED') {
      const before = Math.min(Number(detail?.before), time - retentionMinS);
      // One without a list of its leaves covers none.
      erased.push({ before, spans: readLeafRanges(String(detail?.leaves)) ?? [] });
      return () => void erased.pop();
    }
    if (kind !== 'TRANSFER') return () => {};
    const count = transfers.get(number) ?? 0;
    transfers.set(number, count + 1);
    return () => void transfers.set(number, count);
  }

  function read(index: number, data: string | undefined): void {
    if (data === undefined || !tree.hasLeaf(index, data)) {
      faultCount += 1;
      countFault();
      if (faults.length < faultsMax)
        faults.push(`leaf ${index} of the evidence log is not what was recorded`);
      return;
    }
    const takeBack = note(JSON.parse(data));
    if (index >= tree.durableSize()) undo.push(takeBack);
  }

  function scan(leavesMax: number): void {
    const end = Math.min(tree.size(), scanned + leavesMax);
    while (scanned < end) {
      const width = Math.min(leavesAtOnce - (scanned % leavesAtOnce), end - scanned);
      const data = leaves.dataFrom(scanned, width);
      for (let place = 0; place < width; place += 1) read(scanned + place, data[place]);
      scanned += width;
    }
  }

  /** Reads all that was not read yet. */
  function complete(): void {
    if (tree.size() === 0 || scanned < tree.size()) {
      tree.catchUp();
      scan(Number.POSITIVE_INFINITY);
    }
  }

  /** How many filings of a year were recorded after one place in it and before another. */
  function countOf(year: number, after: number, before: number): number {
    const last = Math.min(before - 1, years.get(year) ?? 0);
    const leftOut = skipped
      .filter((each) => each.year === year)
      .map((each) => Math.min(last, each.through) - Math.max(after, each.after))
      .reduce((sum, count) => sum + Math.max(0, count), 0);
    return Math.max(0, last - after - leftOut);
  }

  function filingsBetween(below: string, above: string): number {
    complete();
    const [firstYear, lastYear] = [yearOfFiling(below), yearOfFiling(above)];
    let count = 0;
    for (const year of years.keys()) {
      if (year < firstYear || year > lastYear) continue;
      const after = year === firstYear ? sequenceOfFiling(below) : 0;
      count += countOf(year, after, year === lastYear ? sequenceOfFiling(above) : filingSequenceMax + 1);
    }
    return count;
  }

  return {
    scan,
    scanned: () => scanned,
    faults: () => ({ count: faultCount, first: faults }),
    appended: (index, leaf) => {
      if (index !== scanned) return;
      undo.push(note(leaf));
      scanned += 1;
    },
    lastOf: (year) => {
      complete();
      return years.get(year) ?? 0;
    },
    hasFiling: (filingNo) => {
      if (!filingForm.test(filingNo)) return false;
      complete();
      const sequence = sequenceOfFiling(filingNo);
      return sequence > 0 && countOf(yearOfFiling(filingNo), sequence - 1, sequence + 1) > 0;
    },
    filingsBetween,
    transfersOf: (filingNo) => {
      complete();
      return transfers.get(filingNo) ?? 0;
    },
    skippedThrough: (year) => {
      complete();
      return Math.max(0, ...skipped.filter((each) => each.year === year).map(({ through }) => through));
    },
    erasedBefore: (leafIndex) => {
      complete();
      return erased.find(({ spans }) => isIn(spans, leafIndex))?.before;
    },
    save: () => JSON.stringify({ scanned, years: [...years], transfers: [...transfers], skipped, erased }),
    load: (saved) => {
      if (scanned > 0) return;
      const known: Saved = JSON.parse(saved);
      ({ scanned } = known);
      years = new Map(known.years);
      transfers = new Map(known.transfers);
      skipped = [...known.skipped];
      erased = [...known.erased];
    },
    committed: () => {
      undo.length = 0;
    },
    rolledBack: () => {
      while (undo.length > 0) undo.pop()?.();
      scanned = Math.min(scanned, tree.size());
    },
  };
}

/** Whether a leaf is in one of these spans, which are in ascending order. */
function isIn(spans: readonly LeafSpan[], leafIndex: number): boolean {
  let [from, to] = [0, spans.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const span = spans[middle] as LeafSpan;
    if (span.last < leafIndex) from = middle + 1;
    else to = middle;
  }
  const span = spans[from];
  return span !== undefined && span.first <= leafIndex;
}
