import type { AuditReport, LoggedEvent, RecordLeaf } from '../evidence/verifier/index.ts';
import { type Attested, attestedAsJson, linesOf } from './attested.ts';
import type { Terminal } from './command.ts';
import { instant } from './verdict.ts';

/** How many log events of each sort the text lists; JSON has all. */
const eventsListed = 50;

/** Log events that allow times to go back, numbers to be missing, or times that nobody can check. They are listed first. */
const allowances: readonly string[] = ['LOG_BEGUN', 'LOG_FORKED', 'CLOCK_ACCEPTED', 'NUMBERS_SKIPPED'];

/** A record of a filing, and the leaf that it is. */
export interface FilingRecord extends Pick<RecordLeaf, 'kind' | 'sequence' | 'timeS'> {
  readonly leaf: number;
}

/** What an audit prints. */
export interface Printed {
  readonly report: AuditReport;
  /** The time stamp; undefined without one. */
  readonly attested: Attested | undefined;
  /** The filing number of `--number`, and its records. */
  readonly number: string | undefined;
  readonly records: readonly FilingRecord[] | undefined;
}

/** Prints the report of an audit that verified. */
export function printReport(printed: Printed, isJson: boolean, terminal: Terminal): void {
  if (isJson) terminal.print(JSON.stringify(asJson(printed)));
  else printLines(printed, terminal);
}

/** The filings by year, in order. */
const yearsOf = ({ contents: { years } }: AuditReport) =>
  Array.from(years, ([year, { filings, last }]) => ({ year, filings, last }))
    .filter(({ filings }) => filings > 0)
    .toSorted((one, other) => one.year - other.year);

/** What witnesses and time stamp authorities attest. */
const attestedBy = ({ report: { cosignatures }, attested }: Printed): Attested => ({
  ...{ stamped: undefined, ...attested },
  cosignatures,
});

function asJson(printed: Printed) {
  const { report, records } = printed;
  const { checkpoint, signers, from, contents, findings } = report;
  const { origin, size } = checkpoint;
  const { transfers, told, newestS } = contents;
  return {
    ...{ verified: true, origin, size, signedBy: signers.map(({ vkey }) => vkey), from },
    ...attestedAsJson(attestedBy(printed)),
    ...{ years: yearsOf(report), transfers },
    newest: newestS === undefined ? undefined : instant(newestS),
    warnings: findings,
    logEvents: told.map(({ index, act, timeS, detail }) => ({
      ...{ leaf: index, kind: act, time: instant(timeS), detail: JSON.parse(detail) },
    })),
    records: records?.map(({ leaf, kind, sequence, timeS }) => ({
      ...{ leaf, kind, sequence, time: instant(timeS) },
    })),
  };
}

function printLines(printed: Printed, { print, printError }: Terminal): void {
  const { report, number, records = [] } = printed;
  const { checkpoint, signers, from, contents, findings } = report;
  const { transfers, told, acts, newestS } = contents;
  const newest = newestS === undefined ? undefined : instant(newestS);
  print(`VERIFIED: the ${checkpoint.size} leaves of the log ${checkpoint.origin} are those that it signed`);
  if (from > 0) print(`(an earlier audit verified those before leaf ${from})`);
  for (const { vkey } of signers) print(`signed by ${vkey}`);
  const stampedLeaves = printed.attested?.stampedLeaves;
  for (const line of linesOf(attestedBy(printed), `the tree of ${stampedLeaves} leaves `)) print(line);
  for (const { year, filings, last } of yearsOf(report)) {
    print(`${year}: ${filings} filings, to number ${last}, ${last - filings} numbers skipped`);
  }
  print(
    `${transfers} records after filings, ${acts} log events${newest ? `, the newest leaf of ${newest}` : ''}`,
  );
  if (acts > 0) print(`log events: ${countsOf(told)}`);
  const isAllowance = ({ act }: LoggedEvent) => allowances.includes(act);
  const [allowing, others] = [told.filter(isAllowance), told.filter((event) => !isAllowance(event))];
  for (const some of [allowing, others]) {
    if (some.length > eventsListed)
      print(`(the newest ${eventsListed} of ${some.length}; --json has all of them)`);
    for (const { index, act, timeS, detail } of some.slice(-eventsListed)) {
      print(`  leaf ${index}, ${instant(timeS)}: ${act} ${detail}`);
    }
  }
  if (number !== undefined) print(`records of ${number}:`);
  for (const { leaf, kind, sequence, timeS } of records) {
    print(`  leaf ${leaf}, ${instant(timeS)}: ${kind}, sequence ${sequence}`);
  }
  for (const { what } of findings) printError(`warning: ${what}`);
}

/** The number of log events of each kind. */
function countsOf(told: readonly LoggedEvent[]): string {
  const kinds = Map.groupBy(told, ({ act }) => act);
  return Array.from(kinds, ([kind, { length }]) => `${length} ${kind}`).join(', ');
}
