import type { Checkpoint, VerifierKey } from '../formats/checkpoint.ts';
import { badSignature, forked } from '../formats/failure.ts';
import { filingNumber, type Leaf, type LogEventLeaf, type RecordLeaf } from './record.ts';
import { instant } from './seen.ts';

/**
 * Checks that the leaves of a log agree with each other, in their order:
 * - The filings of a year have the numbers 1, 2, 3 and so on. A leaf NUMBERS_SKIPPED, anywhere in the log, explains missing
 *   numbers. No number is assigned twice, and no skipped number is assigned.
 * - The later records of a filing have the sequences 2, 3 and so on. Log events have 1, 2, 3 and so on.
 * - Times do not decrease, except before LOG_BEGUN, which states the number of those leaves, and at CLOCK_ACCEPTED.
 * - The number of a filing has the year of its time, in some time zone.
 * - RECORDS_ERASED erases records that are at least five years old, each once; in a sandbox, by its clock that may be ahead.
 */

/** The state after some leaves, from which an audit continues. */
export interface ContentsState {
  size: number;
  logEventCount: number;
  /** The time of the newest leaf, Unix seconds. No leaf since the last CLOCK_ACCEPTED is later. */
  newestS: number | undefined;
  isBegun: boolean;
  /** The log events, without later ones of frequent kinds. */
  readonly logEvents: LoggedEvent[];
  keys: readonly KeyLifetime[];
  /** By leaf: the time of a record that was not erased, 0 for all others. */
  readonly times: number[];
  transfers: number;
  readonly years: Map<number, Year>;
  readonly skips: Skip[];
}

/** A log event in the report. */
export interface LoggedEvent {
  readonly index: number;
  readonly event: string;
  readonly timeS: number;
  /** JSON. */
  readonly detail: string;
}

/** Log events that are kept at most: no registry makes more. */
const logEventsMax = 10_000;

/** Kinds of log events that can be frequent, and allow no exception from the rules. */
const frequent: ReadonlySet<string> = new Set(['RECORDS_ERASED', 'KEY_ADDED', 'KEY_RETIRED']);

/** Returns the state before the first leaf. */
export const noContents = (): ContentsState => ({
  ...{ size: 0, logEventCount: 0, transfers: 0, newestS: undefined, isBegun: false },
  ...{ years: new Map(), skips: [], logEvents: [], keys: [], times: [] },
});

/**
 * Checks the leaves of the log `origin` one after another, and adds them to a state. All throw VerificationFailure FORKED at a
 * contradiction.
 */
export function createContents(state: ContentsState, origin: string) {
  const { logEvents, times } = state;
  const contradiction = (what: string) => forked(`leaf ${state.size} of the log ${what}`);
  const numbers = createFilingNumbers(state, contradiction);

  function addTime({ timeS }: Leaf, mayGoBack: boolean): void {
    const { isBegun, newestS } = state;
    if (isBegun && newestS !== undefined && timeS < newestS && !mayGoBack)
      throw contradiction(`is from ${instant(timeS)}, earlier than the leaf before it`);
    state.newestS = timeS;
  }

  function addLogEvent(leaf: LogEventLeaf): void {
    const { event, sequence, timeS, detail } = leaf;
    const { size, logEventCount } = state;
    if (sequence !== logEventCount + 1)
      throw contradiction(`is log event ${sequence}, after log event ${logEventCount}`);
    state.logEventCount = sequence;
    keepLogEvent({ index: size, event, timeS, detail: JSON.stringify(Object.fromEntries(detail)) });
    if (event === 'LOG_BEGUN') begin(leaf);
    if (event === 'NUMBERS_SKIPPED') numbers.skip(leaf);
    if (event === 'RECORDS_ERASED') erase(leaf);
    state.keys = lifetimesAfter(state.keys, leaf, size);
  }

  /** Keeps a log event for the report. Frequent kinds get half of the room; further ones are left out. */
  function keepLogEvent(logEvent: LoggedEvent): void {
    if (frequent.has(logEvent.event) && logEvents.length >= logEventsMax) return;
    if (logEvents.length >= 2 * logEventsMax)
      throw contradiction(`comes after more than ${logEventsMax} log events`);
    logEvents.push(logEvent);
  }

  function begin({ detail }: LogEventLeaf): void {
    if (state.isBegun) throw contradiction('says a second time that the log was begun');
    if (detail.get('adopted') !== state.size)
      throw contradiction(`says that ${detail.get('adopted')} records are from before the log was begun`);
    state.isBegun = true;
  }

  /** Removes the records that a log event erases. */
  function erase({ timeS, detail }: LogEventLeaf): void {
    const [before, records, leaves] = ['before', 'records', 'leaves'].map((name) => detail.get(name));
    if (typeof before !== 'number' || typeof records !== 'number')
      throw contradiction('does not say what was erased');
    if (before > yearsBefore(timeS + aheadOf(detail.get('ahead'), origin), retentionYears))
      throw contradiction(`erases records from less than ${retentionYears} years before ${instant(timeS)}`);
    if (leaves === undefined) return;
    const erased = eraseLeaves(String(leaves), before);
    if (erased !== records)
      throw contradiction(`says that ${records} records were erased, but names ${erased} leaves`);
  }

  /** Returns how many leaves were erased. */
  function eraseLeaves(text: string, before: number): number {
    let [erased, next] = [0, 0];
    for (const range of text.split(',')) {
      const [, first = '', last = first] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(range) ?? [];
      if (first === '' || Number(first) < next || Number(last) < Number(first) || Number(last) >= state.size)
        throw contradiction(`names the leaves that it erases in an unknown form: ${JSON.stringify(range)}`);
      next = Number(last) + 1;
      for (let leaf = Number(first); leaf < next; leaf += 1) {
        const timeS = times[leaf] ?? 0;
        if (timeS === 0)
          throw contradiction(`erases leaf ${leaf}, which is not a record or was erased before`);
        if (timeS > before)
          throw contradiction(`erases leaf ${leaf} of ${instant(timeS)}, after ${instant(before)}`);
        times[leaf] = 0;
        erased += 1;
      }
    }
    return erased;
  }

  return {
    add: (leaf: Leaf): void => {
      const isLogEvent = leaf.kind === 'LOG_EVENT';
      addTime(leaf, isLogEvent && (leaf.event === 'CLOCK_ACCEPTED' || leaf.event === 'LOG_BEGUN'));
      if (isLogEvent) addLogEvent(leaf);
      else numbers.add(leaf);
      times.push(isLogEvent ? 0 : Math.max(leaf.timeS, 1));
      state.size += 1;
    },
    /** Checks what depends on all leaves. */
    finish: (): void => {
      if (state.size > 0 && !state.isBegun) throw forked('no leaf of the log says that it was begun');
      numbers.finish();
    },
  };
}

const retentionYears = 5;

/** How the name of the log of a sandbox begins if nobody has set one. No production has such a name. */
const sandboxOrigin = 'artseal.invalid/';

/** The most that the clock of such a sandbox can be ahead, in seconds: ten years. */
const aheadMaxS = 315_360_000;

/** The seconds by which an erasure may count more age than the time of its leaf allows; 0 if what it says does not count. */
function aheadOf(said: unknown, origin: string): number {
  const counts =
    typeof said === 'number' && said >= 0 && said <= aheadMaxS && origin.startsWith(sandboxOrigin);
  return counts ? said : 0;
}

function yearsBefore(timeS: number, years: number): number {
  const date = new Date(timeS * 1000);
  return date.setUTCFullYear(date.getUTCFullYear() - years) / 1000;
}

/** When a key signs a log, according to its log events. */
interface KeyLifetime {
  readonly vkey: string;
  /** The leaf that adds it. */
  readonly from: number;
  /** The leaf that retires it; undefined if there is none. */
  readonly until: number | undefined;
}

/** Keys of a log at most: no registry makes more. */
const keysMax = 10_000;

/** Returns the lifetimes after a further log event: KEY_ADDED, KEY_RETIRED, or LOG_FORKED, which retires all keys. */
function lifetimesAfter(
  lifetimes: readonly KeyLifetime[],
  { event, detail }: LogEventLeaf,
  index: number,
): readonly KeyLifetime[] {
  const vkey = detail.get('vkey');
  const ended = (isEnding: (lifetime: KeyLifetime) => boolean) =>
    lifetimes.map((lifetime) =>
      lifetime.until === undefined && isEnding(lifetime) ? { ...lifetime, until: index } : lifetime,
    );
  if (event === 'LOG_FORKED') return ended(() => true);
  if (event !== 'KEY_ADDED' && event !== 'KEY_RETIRED') return lifetimes;
  if (typeof vkey !== 'string' || lifetimes.length === keysMax)
    throw forked(`leaf ${index} of the log does not name a key, or there are more than ${keysMax} keys`);
  return event === 'KEY_ADDED'
    ? [...lifetimes, { vkey, from: index, until: undefined }]
    : ended((lifetime) => lifetime.vkey === vkey);
}

/**
 * Checks that a checkpoint is signed by a key that the log added, and did not retire, in the leaves of the checkpoint. Throws
 * VerificationFailure BAD_SIGNATURE.
 */
export function checkSigners(
  lifetimes: readonly KeyLifetime[],
  signers: readonly VerifierKey[],
  { size }: Checkpoint,
): void {
  const signs = ({ from, until = size }: KeyLifetime) => from < size && until >= size;
  const current = lifetimes.filter(signs).map(({ vkey }) => vkey);
  if (size === 0 || signers.some(({ vkey }) => current.includes(vkey))) return;
  const ends = signers.map(({ vkey }) => {
    const last = lifetimes.findLast((lifetime) => lifetime.vkey === vkey);
    return `${vkey} (${last === undefined ? 'never added' : `retired by leaf ${last.until}`})`;
  });
  throw badSignature(
    `the checkpoint of ${size} leaves is signed by no given key that is active according to the log: ${ends.join(', ')}`,
  );
}

/** The filings of a year. */
interface Year {
  filings: number;
  /** The last number that was assigned. */
  last: number;
  /** By number: the sequence of the filing's last record, undefined if there is none. */
  readonly sequences: number[];
  /** Numbers that are missing. */
  readonly gaps: Omit<Skip, 'year'>[];
}

/** Skipped numbers of a year: from `after` + 1 to `through`. */
interface Skip {
  readonly year: number;
  readonly after: number;
  readonly through: number;
}

/** Gaps that are kept at most: no registry makes more. */
const gapsMax = 10_000;

/** The last number of a year. */
const numberMax = 999_999;

/**
 * Checks the numbers and sequences of filings, leaf by leaf, and adds them to a state. `contradiction` makes the failure of
 * the current leaf. All throw VerificationFailure FORKED at a contradiction.
 */
function createFilingNumbers(state: ContentsState, contradiction: (what: string) => Error) {
  const { years, skips } = state;

  function add({ kind, number, sequence, timeS }: RecordLeaf): void {
    const [, yearText, placeText] = filingNumber.exec(number) ?? [];
    const year = yearOf(Number(yearText));
    const place = Number(placeText);
    const before = year.sequences[place] ?? 0;
    if (kind === 'FILING') {
      if (before > 0) throw contradiction(`has the number ${number} for a second filing`);
      addNumber(year, Number(yearText), place, number);
      if (!mayBeYear(Number(yearText), timeS)) {
        throw contradiction(`has the number ${number}, and was filed ${instant(timeS)}, in another year`);
      }
    } else {
      if (before === 0) throw contradiction(`is a ${kind} of ${number}, which was not filed before it`);
      if (sequence !== before + 1)
        throw contradiction(`is record ${sequence} of ${number}, after record ${before}`);
      state.transfers += 1;
    }
    year.sequences[place] = sequence;
  }

  function addNumber(year: Year, name: number, place: number, number: string): void {
    const isSkipped = skips.some((one) => one.year === name && place > one.after && place <= one.through);
    if (place === 0) throw contradiction(`has the number ${number}, and numbers begin with 1`);
    if (isSkipped) throw contradiction(`has the number ${number}, which was skipped`);
    if (place < year.last) throw contradiction(`has the number ${number}, after a higher one`);
    if (place > year.last + 1) {
      if (year.gaps.length === gapsMax)
        throw contradiction(`comes after more than ${gapsMax} gaps of numbers`);
      year.gaps.push({ after: year.last, through: place - 1 });
    }
    year.last = place;
    year.filings += 1;
  }

  function yearOf(name: number): Year {
    const known = years.get(name);
    if (known !== undefined) return known;
    const year: Year = { filings: 0, last: 0, sequences: [], gaps: [] };
    years.set(name, year);
    return year;
  }

  /** Adds a log event NUMBERS_SKIPPED. */
  function skip({ detail }: LogEventLeaf): void {
    const [year, after, through] = ['year', 'after', 'through'].map((name) => detail.get(name));
    const areNumbers = typeof year === 'number' && typeof after === 'number' && typeof through === 'number';
    if (!areNumbers || through > numberMax) throw contradiction('does not say which numbers are skipped');
    const { last = 0, sequences = [] } = years.get(year) ?? {};
    for (let number = Math.max(after, 0) + 1; number <= Math.min(through, last); number += 1)
      if (sequences[number]) throw contradiction(`skips number ${number} of ${year}, which was assigned`);
    skips.push({ year, after, through });
  }

  return {
    add,
    skip,
    /** Checks that log events skip all missing numbers. */
    finish: (): void => {
      for (const [year, { gaps }] of years) {
        const gap = gaps.find((candidate) => !isExplained(year, candidate, skips));
        if (gap === undefined) continue;
        throw forked(
          `the numbers ${gap.after + 1} to ${gap.through} of ${year} are missing, and no leaf says that they were skipped`,
        );
      }
    },
  };
}

/** Whether leaves skip all numbers of a gap. */
function isExplained(year: number, { after, through }: Omit<Skip, 'year'>, skips: readonly Skip[]): boolean {
  const own = skips.filter((skip) => skip.year === year).toSorted((one, other) => one.after - other.after);
  let upTo = after;
  for (const skip of own) if (skip.after <= upTo) upTo = Math.max(upTo, skip.through);
  return upTo >= through;
}

/** The offsets of the westernmost and the easternmost zone, in seconds. */
const zonesS = [-12 * 3600, 14 * 3600];

/** Whether a time is in that year in some time zone. */
function mayBeYear(year: number, timeS: number): boolean {
  return zonesS.some((offsetS) => new Date((timeS + offsetS) * 1000).getUTCFullYear() === year);
}
