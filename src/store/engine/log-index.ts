import {
  filingNumber,
  filingSequenceMax,
  retentionYears,
  sequenceOfFiling,
  yearOfFiling,
} from '../../domain/filing.ts';
import { type LeafSpan, readLeafRanges } from '../../domain/leaf.ts';
import type { Leaves } from './leaves.ts';
import type { VerifiedTree } from './verified-tree.ts';

/** Leaves that are read at a time: those of a tile. */
const leavesAtOnce = 256;

/** Faults that are described, at most. */
const faultsMax = 10;

/** The part of a leaf that the index needs. */
export interface NotedLeaf {
  readonly kind: string;
  readonly number: string;
  /** Unix seconds. */
  readonly time: number;
  /** Of a log event. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined;
}

/** Skipped numbers. */
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

/** What the leaves say. */
interface Contents {
  /** The last number of each year. */
  readonly years: Map<number, number>;
  /** The number of TRANSFER records of each filing. */
  readonly transfers: Map<string, number>;
  readonly skipped: Skipped[];
  readonly erased: Erased[];
}

/** The index as it is saved. */
interface Saved extends Pick<Contents, 'skipped' | 'erased'> {
  readonly scanned: number;
  readonly years: readonly (readonly [number, number])[];
  readonly transfers: readonly (readonly [string, number])[];
}

/** Less than the retention can ever be, in seconds. */
const retentionMinS = retentionYears * 365 * 86_400;

const filingForm = /^AS-\d{4}-\d{6}$/;

/** What is read of the evidence log. */
export interface LogReads {
  readonly tree: VerifiedTree;
  readonly index: LogIndex;
  readonly leaves: Leaves;
}

/** As `createLogIndex` makes it. */
export type LogIndex = ReturnType<typeof createLogIndex>;

/**
 * An index of the evidence log by filing, in memory: the numbers that it has, the records of each filing, and what was erased.
 * It is made of leaves that are in the verified tree, so it shows if a row was deleted or marked as erased. Each question
 * first reads the leaves that were not read yet. Only in a sandbox, an erasure may count an advanced clock as age.
 */
export function createLogIndex(
  leaves: Leaves,
  tree: VerifiedTree,
  countFault: () => void,
  isSandbox = false,
) {
  let scanned = 0;
  let contents: Contents = { years: new Map(), transfers: new Map(), skipped: [], erased: [] };
  /** What undoes the leaves of the transaction. */
  const undo: (() => void)[] = [];
  let faultCount = 0;
  const faults: string[] = [];

  function read(index: number, data: string | undefined, isOfTree: boolean): void {
    if (data === undefined || !isOfTree) {
      faultCount += 1;
      countFault();
      if (faults.length < faultsMax)
        faults.push(`leaf ${index} of the evidence log is not what was recorded`);
      return;
    }
    const undoLeaf = note(contents, JSON.parse(data), isSandbox);
    if (index >= tree.durableSize()) undo.push(undoLeaf);
  }

  function scan(leavesMax: number): void {
    const end = Math.min(tree.size(), scanned + leavesMax);
    while (scanned < end) {
      const width = Math.min(leavesAtOnce - (scanned % leavesAtOnce), end - scanned);
      const data = leaves.dataFrom(scanned, width);
      // All before the first is noted: an engine may have to read rows, and then scans again.
      const areOfTree = data.map((leaf, place) => tree.hasLeaf(scanned + place, leaf));
      for (let nth = 0; nth < width; nth += 1) read(scanned + nth, data[nth], areOfTree[nth] === true);
      scanned += width;
    }
  }

  /** Reads all leaves that were not read yet. */
  function complete(): Contents {
    if (tree.size() === 0) tree.load();
    if (scanned < tree.size()) scan(Number.POSITIVE_INFINITY);
    return contents;
  }

  return {
    /** Reads so many leaves more, at most. */
    scan,
    /** The number of leaves that were read. */
    scanned: (): number => scanned,
    /** Leaves in the tables that are not those of the tree: their number, and descriptions of the first ones. */
    faults: (): { readonly count: number; readonly first: readonly string[] } => ({
      count: faultCount,
      first: faults,
    }),
    /** Adds a leaf that was appended. */
    appended: (index: number, leaf: NotedLeaf) => {
      if (index !== scanned) return;
      undo.push(note(contents, leaf, isSandbox));
      scanned += 1;
    },
    /** The last number of a year, 0 if it has none. */
    lastOf: (year: number): number => complete().years.get(year) ?? 0,
    /** The newest filing; undefined if there is none. */
    newestFiling: (): string | undefined => newestFiling(complete()),
    /** Whether a filing of that number was recorded. */
    hasFiling: (filingNo: string): boolean => {
      if (!filingForm.test(filingNo)) return false;
      const sequence = sequenceOfFiling(filingNo);
      return sequence > 0 && countOf(complete(), yearOfFiling(filingNo), sequence - 1, sequence + 1) > 0;
    },
    /** The number of filings between two numbers, without these. */
    filingsBetween: (below: string, above: string): number => filingsBetween(complete(), below, above),
    /** The number of TRANSFER records of a filing. */
    transfersOf: (filingNo: string): number => complete().transfers.get(filingNo) ?? 0,
    /** The last skipped number of a year, 0 if none was skipped. */
    skippedThrough: (year: number): number => skippedThrough(complete(), year),
    /**
     * The latest time that the leaf of an erased record can have, Unix seconds, if a log event says that its record was erased.
     * Undefined if none does.
     */
    erasedBefore: (leafIndex: number): number | undefined =>
      complete().erased.find(({ spans }) => isIn(spans, leafIndex))?.before,
    /** The whole index as JSON, for `load` after a restart. */
    save: (): string => {
      const { years, transfers, ...lists } = contents;
      return JSON.stringify({ scanned, years: [...years], transfers: [...transfers], ...lists });
    },
    /** Loads a saved index. Does nothing if leaves were read already. */
    load: (saved: string) => {
      if (scanned > 0) return;
      const { years, transfers, skipped, erased, ...known }: Saved = JSON.parse(saved);
      ({ scanned } = known);
      contents = { years: new Map(years), transfers: new Map(transfers), skipped, erased };
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

/** Adds the next leaf. Returns what undoes that. */
function note(
  { years, transfers, skipped, erased }: Contents,
  leaf: NotedLeaf,
  isSandbox: boolean,
): () => void {
  const { kind, number, time, detail } = leaf;
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
    const aheadS = isSandbox ? Number(detail?.ahead ?? 0) : 0;
    const before = Math.min(Number(detail?.before), time + aheadS - retentionMinS);
    // An event without a list of its leaves covers none.
    erased.push({ before, spans: readLeafRanges(String(detail?.leaves)) ?? [] });
    return () => void erased.pop();
  }
  if (kind !== 'TRANSFER') return () => {};
  const count = transfers.get(number) ?? 0;
  transfers.set(number, count + 1);
  return () => void transfers.set(number, count);
}

function newestFiling({ years }: Contents): string | undefined {
  const year = Math.max(...years.keys());
  return years.size === 0 ? undefined : filingNumber(year, years.get(year) ?? 0);
}

function skippedThrough({ skipped }: Contents, year: number): number {
  const ofYear = skipped.filter((each) => each.year === year);
  return Math.max(0, ...ofYear.map(({ through }) => through));
}

/** The number of filings of a year between two numbers, without these. */
function countOf({ years, skipped }: Contents, year: number, after: number, before: number): number {
  const last = Math.min(before - 1, years.get(year) ?? 0);
  const skippedNumbers = skipped
    .filter((each) => each.year === year)
    .map((each) => Math.min(last, each.through) - Math.max(after, each.after))
    .reduce((sum, count) => sum + Math.max(0, count), 0);
  return Math.max(0, last - after - skippedNumbers);
}

function filingsBetween(contents: Contents, below: string, above: string): number {
  const [firstYear, lastYear] = [yearOfFiling(below), yearOfFiling(above)];
  let count = 0;
  for (const year of contents.years.keys()) {
    if (year < firstYear || year > lastYear) continue;
    const after = year === firstYear ? sequenceOfFiling(below) : 0;
    const before = year === lastYear ? sequenceOfFiling(above) : filingSequenceMax + 1;
    count += countOf(contents, year, after, before);
  }
  return count;
}

/** Whether a leaf is in one of the spans, which are in ascending order. */
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
