import { type AuditReport, instant, type LoggedEvent, type RecordLeaf } from '../evidence/verifier/index.ts';
import { type Attested, attestedAsJson, linesOf } from './attested.ts';
import type { Terminal } from './command.ts';

/** Log events that are printed of each group; --json prints all. */
const printedMax = 50;

/** Log events that allow exceptions from the rules. They are printed first. */
const allowances: readonly string[] = ['LOG_BEGUN', 'LOG_FORKED', 'CLOCK_ACCEPTED', 'NUMBERS_SKIPPED'];

/** A record of a filing and its leaf index. */
export interface FilingRecord extends Pick<RecordLeaf, 'kind' | 'sequence' | 'timeS'> {
  readonly leaf: number;
}

/** What is printed. */
export interface Printed {
  readonly report: AuditReport;
  /** The time stamp, if one was given. */
  readonly attested: Attested | undefined;
  /** The given filing number and its records. */
  readonly number: string | undefined;
  readonly records: readonly FilingRecord[] | undefined;
}

/** Prints the result of a successful audit. */
export function printReport(printed: Printed, isJson: boolean, terminal: Terminal): void {
  if (isJson) terminal.print(JSON.stringify(asJson(printed)));
  else printLines(printed, terminal);
}

/** The years with filings, in order. */
const yearsOf = ({ contents: { years } }: AuditReport) =>
  Array.from(years, ([year, { filings, last }]) => ({ year, filings, last }))
    .filter(({ filings }) => filings > 0)
    .toSorted((one, other) => one.year - other.year);

const attestedBy = ({ report: { cosignatures }, attested }: Printed): Attested => ({
  ...{ stamped: undefined, ...attested },
  cosignatures,
});

function asJson(printed: Printed) {
  const { report, records } = printed;
  const { checkpoint, signers, from, contents, findings } = report;
  const { origin, size } = checkpoint;
  const { transfers, logEvents, newestS } = contents;
  return {
    ...{ verified: true, origin, size, signedBy: signers.map(({ vkey }) => vkey), from },
    ...attestedAsJson(attestedBy(printed)),
    ...{ years: yearsOf(report), transfers },
    newest: newestS === undefined ? undefined : instant(newestS),
    warnings: findings,
    logEvents: logEvents.map(({ index, event, timeS, detail }) => ({
      ...{ leaf: index, kind: event, time: instant(timeS), detail: JSON.parse(detail) },
    })),
    records: records?.map(({ leaf, kind, sequence, timeS }) => ({
      ...{ leaf, kind, sequence, time: instant(timeS) },
    })),
  };
}

function printLines(printed: Printed, { print, printError }: Terminal): void {
  const { report, number, records = [] } = printed;
  const { checkpoint, signers, from, contents, findings } = report;
  const { transfers, logEvents, logEventCount, newestS } = contents;
  const newest = newestS === undefined ? undefined : instant(newestS);
  print(`VERIFIED: the ${checkpoint.size} leaves of the log ${checkpoint.origin} are what it signed`);
  if (from > 0) print(`(an earlier audit verified those before leaf ${from})`);
  for (const { vkey } of signers) print(`signed by ${vkey}`);
  const stampedLeaves = printed.attested?.stampedLeaves;
  for (const line of linesOf(attestedBy(printed), `the tree of ${stampedLeaves} leaves `)) print(line);
  for (const { year, filings, last } of yearsOf(report)) {
    print(`${year}: ${filings} filings, to number ${last}, ${last - filings} numbers skipped`);
  }
  print(
    `${transfers} later records, ${logEventCount} log events${newest ? `, the newest leaf of ${newest}` : ''}`,
  );
  if (logEventCount > 0) print(`log events: ${countsOf(logEvents)}`);
  const isAllowance = ({ event }: LoggedEvent) => allowances.includes(event);
  const others = logEvents.filter((one) => !isAllowance(one));
  for (const some of [logEvents.filter(isAllowance), others]) {
    if (some.length > printedMax) print(`(the newest ${printedMax} of ${some.length}; --json prints all)`);
    for (const { index, event, timeS, detail } of some.slice(-printedMax)) {
      print(`  leaf ${index}, ${instant(timeS)}: ${event} ${detail}`);
    }
  }
  if (number !== undefined) print(`records of ${number}:`);
  for (const { leaf, kind, sequence, timeS } of records) {
    print(`  leaf ${leaf}, ${instant(timeS)}: ${kind}, sequence ${sequence}`);
  }
  for (const { what } of findings) printError(`warning: ${what}`);
}

/** Counts log events by kind. */
function countsOf(logEvents: readonly LoggedEvent[]): string {
  const kinds = Map.groupBy(logEvents, ({ event }) => event);
  return Array.from(kinds, ([kind, { length }]) => `${length} ${kind}`).join(', ');
}
