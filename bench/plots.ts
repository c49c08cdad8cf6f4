import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Panel, type Series, svgOf } from './plot.ts';
import type { ClosedLoop, OfferedLoad, Size, State, WrittenReport } from './report.ts';

/**
 * Draws the figures of performance/figures.json as SVG files beside it, and writes its tables into performance.md, both in docs
 * or in the folder that is given.
 */

const [docs = join(import.meta.dirname, '..', 'docs')] = process.argv.slice(2);
const folder = join(docs, 'performance');
const report: WrittenReport = JSON.parse(readFileSync(join(folder, 'figures.json'), 'utf8'));

const workloads = ['filing', 'provenance'] as const;
type Workload = (typeof workloads)[number];
/** A server that responds to a smaller share of the requests in their time does not keep up with a rate. */
const keptUpMin = 0.95;
/** Of the closed loop, the rounds over so many. */
const connections = 64;

const count = (value: number): string => Math.round(value).toLocaleString('en');
const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const us = (value: number): string => `${Math.round(value)} µs`;

for (const workload of workloads)
  write(`load-${workload}.svg`, svgOf(`Offered load: ${workload}`, loadPanels(workload)));
write('size.svg', svgOf('Cost against the number of filings', sizePanels()));
writeTables({
  measured: [measuredLine()],
  'closed loop': closedLoopRows(),
  'offered load': offeredLoadRows(),
  size: sizeRows(),
});

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}

/** The lines of servers, in the order in which the report has them. */
function seriesOf<Row extends { readonly server: string }>(
  rows: readonly Row[],
  pointOf: (row: Row) => readonly [number, number],
): Series[] {
  return [...Map.groupBy(rows, ({ server }) => server)].map(([name, own]) => ({
    name,
    points: own.map(pointOf),
  }));
}

function loadPanels(workload: Workload): Panel[] {
  const rows = report.offeredLoad.filter((row) => row.workload === workload);
  const panel = (title: string, value: (row: OfferedLoad) => number): Panel => ({
    title,
    x: { title: 'requests/s offered', isLog: true },
    y: { isLog: true },
    series: seriesOf(rows, (row) => [row.offeredPerS, value(row)]),
  });
  return [
    panel('responses/s', ({ requestsPerS }) => requestsPerS),
    panel('p50, ms', ({ p50Ms }) => p50Ms),
    panel('p99, ms', ({ p99Ms }) => p99Ms),
    panel('p99.9, ms', ({ p999Ms }) => p999Ms),
  ];
}

function sizePanels(): Panel[] {
  const x = { title: 'filings', isLog: true };
  const y = { isLog: false };
  const cost = (workload: Workload): Panel => ({
    title: `${workload}: CPU time a call, µs`,
    ...{ x, y },
    series: seriesOf(ofWorkload(report.size, workload), (row: Size) => [row.filings, row.cpuUs]),
  });
  const state = (title: string, value: (row: State) => number): Panel => ({
    ...{ title, x, y },
    series: seriesOf(report.states, (row) => [row.filings, value(row)]),
  });
  return [
    ...workloads.map(cost),
    state('resident memory, MB', ({ residentMb }) => residentMb),
    state('start until ready, ms', ({ readyMs }) => readyMs),
  ];
}

function ofWorkload<Row extends { readonly workload: string }>(
  rows: readonly Row[],
  workload: Workload,
): Row[] {
  return rows.filter((row) => row.workload === workload);
}

function measuredLine(): string {
  const { date, commit, node, go, machine } = report;
  const { processor, cores, memoryGb } = machine;
  const versions = [`Node.js ${node.slice(1)}`, ...(go === undefined ? [] : [go.replace('go', 'Go ')])].join(
    ', ',
  );
  const source = `commit ${commit.slice(0, 12)}${commit.endsWith('-dirty') ? ' with changes' : ''}`;
  return `Measured on ${date} at ${source}: ${cores} cores of ${processor}, ${memoryGb} GB, ${versions}.`;
}

function closedLoopRows(): string[] {
  const row = ({ server, workload, requestsPerS, p50Ms, p99Ms, p999Ms, cpuUs }: ClosedLoop) =>
    [workload, server, count(requestsPerS), ms(p50Ms), ms(p99Ms), ms(p999Ms), us(cpuUs)].join(' | ');
  return [
    'call | server | requests/s | p50 | p99 | p99.9 | CPU time a call',
    '---|---|--:|--:|--:|--:|--:',
    ...report.closedLoop.filter((own) => own.connections === connections).map(row),
  ];
}

/** For each server the highest rate that it kept up with, and its times at that rate. */
function offeredLoadRows(): string[] {
  const rows = workloads.flatMap((workload) => {
    const servers = Map.groupBy(ofWorkload(report.offeredLoad, workload), ({ server }) => server);
    return [...servers].map(([server, own]) => {
      const kept = own.findLast(({ requestsPerS, offeredPerS }) => requestsPerS >= keptUpMin * offeredPerS);
      const most = Math.max(...own.map(({ requestsPerS }) => requestsPerS));
      const cells =
        kept === undefined
          ? ['none', '', '', '']
          : [count(kept.offeredPerS), ms(kept.p50Ms), ms(kept.p99Ms), ms(kept.p999Ms)];
      return [workload, server, ...cells, count(most)].join(' | ');
    });
  });
  return [
    'call | server | requests/s that it keeps up with | p50 | p99 | p99.9 | most responses/s',
    '---|---|--:|--:|--:|--:|--:',
    ...rows,
  ];
}

function sizeRows(): string[] {
  const sizes = [...new Set(report.size.map(({ filings }) => filings))];
  const servers = [...new Set(report.size.map(({ server }) => server))];
  const row = (what: string, server: string, values: readonly number[], unit: string) => {
    const ratio = (values.at(-1) ?? Number.NaN) / (values[0] ?? Number.NaN);
    return [what, server, ...values.map((value) => `${count(value)} ${unit}`), ratio.toFixed(2)].join(' | ');
  };
  const states = [
    { what: 'resident memory', value: ({ residentMb }: State) => residentMb, unit: 'MB' },
    { what: 'start until ready', value: ({ readyMs }: State) => readyMs, unit: 'ms' },
  ];
  return [
    ['figure', 'server', ...sizes.map((size) => `${count(size)} filings`), 'last ÷ first'].join(' | '),
    ['---', '---', ...sizes.map(() => '--:'), '--:'].join('|'),
    ...workloads.flatMap((workload) =>
      servers.map((server) => {
        const own = ofWorkload(report.size, workload).filter((size) => size.server === server);
        const values = own.map(({ cpuUs }) => cpuUs);
        return row(`CPU time of a ${workload} call`, server, values, 'µs');
      }),
    ),
    ...states.flatMap(({ what, value, unit }) =>
      servers.map((server) => {
        const own = report.states.filter((state) => state.server === server);
        return row(what, server, own.map(value), unit);
      }),
    ),
  ];
}

/** Replaces what performance.md has between the two marks of each table. Fails if it lacks such marks. */
function writeTables(tables: Readonly<Record<string, readonly string[]>>): void {
  const file = join(docs, 'performance.md');
  let text = readFileSync(file, 'utf8');
  for (const [name, rows] of Object.entries(tables)) {
    const between = new RegExp(`(?<=<!-- ${name}: .* -->\n).*(?=<!-- ${name} end -->)`, 's');
    if (!between.test(text)) throw new Error(`${file} has no place for the table of ${name}.`);
    text = text.replace(between, () => `\n${rows.join('\n')}\n\n`);
  }
  writeFileSync(file, text);
}
