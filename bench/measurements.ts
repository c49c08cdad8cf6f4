import type { Sent, Workload } from './generator.ts';
import { cpuBetween, type ResidentMb } from './process-usage.ts';
import type { Server } from './servers.ts';

/** What one sending to one server showed. */
export type Figures = ReturnType<typeof figuresOf>;

/** The figures that are compared, with the words for them. */
const compared = {
  requestsPerS: 'requests/s',
  cpuUs: 'CPU a call',
  p50Ms: 'p50',
  p99Ms: 'p99',
} as const satisfies Partial<Record<keyof Figures, string>>;

/** A figure that is compared. */
export type Compared = keyof typeof compared;

/** What the figures are of: calls, or orders from filing to release. */
export type Measured = Workload | 'orders';

/** What a ratio of the service to a yardstick must be. It is printed next to what is, and decides nothing. */
interface Bound {
  readonly to: string;
  /** What is measured; undefined if the bound is the same for all. */
  readonly of?: Measured;
  readonly connections: number;
  readonly figure: Compared;
  readonly words: string;
}

const bounds: readonly Bound[] = [
  { to: 'floor', of: 'filing', connections: 64, figure: 'requestsPerS', words: 'at least 0.85' },
  { to: 'floor', of: 'filing', connections: 64, figure: 'cpuUs', words: 'at most 1.60' },
  { to: 'floor', of: 'provenance', connections: 64, figure: 'requestsPerS', words: 'at least 1.00' },
  { to: 'floor', of: 'provenance', connections: 64, figure: 'cpuUs', words: 'at most 1.30' },
  { to: 'floor', connections: 64, figure: 'p99Ms', words: 'at most 1.30' },
  { to: 'floor', connections: 1, figure: 'p50Ms', words: 'at most 1.50' },
  { to: 'fastify', connections: 64, figure: 'requestsPerS', words: 'at least 6.00' },
  { to: 'empty-handler', connections: 64, figure: 'requestsPerS', words: 'at least 0.90' },
  { to: 'no-webhooks', connections: 64, figure: 'requestsPerS', words: 'at least 0.90' },
  { to: 'sqlite', of: 'filing', connections: 64, figure: 'requestsPerS', words: 'at least 0.65' },
  { to: 'sqlite', of: 'keyed', connections: 64, figure: 'requestsPerS', words: 'at least 0.85' },
  { to: 'sqlite', of: 'provenance', connections: 64, figure: 'requestsPerS', words: 'at least 0.60' },
  { to: 'sqlite', connections: 64, figure: 'p99Ms', words: 'at most 2.00' },
  { to: 'postgres', connections: 64, figure: 'p99Ms', words: 'at most 1.20' },
  // Over fewer connections, no processor is full.
  { to: 'one', of: 'filing', connections: 256, figure: 'requestsPerS', words: 'at least 0.95' },
  { to: 'one', of: 'provenance', connections: 256, figure: 'requestsPerS', words: 'at least 1.00' },
  { to: 'sqlite', of: 'orders', connections: 1, figure: 'p50Ms', words: 'at most 10.00, aim 5.00' },
];

const residentMbMax = 250;
/** Of the service on PostgreSQL, without the processes of PostgreSQL. */
const postgresResidentMbMax = 350;
/** The most milliseconds that the service may take from the start of its process until it is ready. */
const readyMsMax = 1_000;

/** The figures of a sending during which the server used so much processor time, in seconds. */
export function figuresOf(
  { requests, seconds, p50Ms, p99Ms, p999Ms, cpuS }: Sent,
  { totalS, busiestS }: { totalS: number; busiestS: number },
) {
  return {
    requestsPerS: requests / seconds,
    p50Ms,
    p99Ms,
    p999Ms,
    /** Processor time of the server a call, of all its threads and of the busiest, in microseconds. */
    cpuUs: (totalS / requests) * 1e6,
    busiestUs: (busiestS / requests) * 1e6,
    /** Share of one core that the server and the load generator used. */
    serverCpu: totalS / seconds,
    loadCpu: cpuS / seconds,
  };
}

/** The median; of an even number of values the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = low] = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1);
  return (low + high) / 2;
}

/** The value that a share of some values does not exceed. NaN counts as the largest. */
export function percentile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
}

/** The range of the values of the rounds. */
export const rangeOf = (values: readonly number[]): string =>
  `(rounds ${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;

/** The figures of servers, how the first of them compares to the others, and whether that says little. */
export function comparisonLines(
  servers: readonly Rounds[],
  connections: number,
  measured?: Measured,
): string[] {
  const [service, ...others] = servers;
  if (service === undefined) return [];
  // One call at a time waits for the disk, and so does a server that commits each call by itself.
  const busy = connections === 1 ? [] : servers.filter(({ name }) => name !== 'fastify');
  return [
    ...servers.map(({ name, figures }) => serverLine(name, figures)),
    ...others.flatMap((other) => ratioLines(service, other, connections, measured)),
    ...doubtLines(busy),
  ];
}

/** The medians of rounds. */
export function mediansOf(rounds: readonly Figures[]): Figures {
  const of = (figure: keyof Figures) => median(rounds.map((figures) => figures[figure]));
  return {
    ...{ requestsPerS: of('requestsPerS'), p50Ms: of('p50Ms'), p99Ms: of('p99Ms'), p999Ms: of('p999Ms') },
    ...{ cpuUs: of('cpuUs'), busiestUs: of('busiestUs') },
    ...{ serverCpu: of('serverCpu'), loadCpu: of('loadCpu') },
  };
}

/** The figures of a server in a line, each the median of its rounds. */
export function serverLine(name: string, rounds: readonly Figures[]): string {
  const of = mediansOf(rounds);
  return [
    `  ${name.padEnd(13)}${String(Math.round(of.requestsPerS)).padStart(7)} requests/s`,
    `p50 ${of.p50Ms.toFixed(2)} ms`,
    `p99 ${of.p99Ms.toFixed(2)} ms`,
    `p99.9 ${of.p999Ms.toFixed(2)} ms`,
    `CPU a call ${micros(of.cpuUs)}, busiest thread ${micros(of.busiestUs)}`,
    `CPU ${percent(of.serverCpu)} of a core, load generator ${percent(of.loadCpu)}`,
  ].join('   ');
}

const micros = (us: number): string => (Number.isNaN(us) ? 'unknown' : `${Math.round(us)} µs`);
const percent = (share: number): string => (Number.isNaN(share) ? 'unknown' : `${Math.round(share * 100)} %`);

/** The rounds of one server. */
export interface Rounds {
  readonly name: string;
  readonly figures: readonly Figures[];
}

/**
 * How the service compares to another server, a line a figure: the median and the range of the ratios of the rounds, and
 * what is required where something is.
 */
export function ratioLines(
  service: Rounds,
  other: Rounds,
  connections: number,
  measured?: Measured,
): string[] {
  return Object.entries(compared).map(([figure, words], place) => {
    const value = (figures: Figures | undefined) => figures?.[figure as Compared] ?? Number.NaN;
    const ratios = service.figures.map((figures, round) => value(figures) / value(other.figures[round]));
    const bound = bounds.find(
      ({ to, of = measured, connections: at, figure: its }) =>
        to === other.name && of === measured && at === connections && its === figure,
    );
    const columns = [
      (place === 0 ? `${service.name} : ${other.name}` : '').padEnd(25),
      words.padEnd(11),
      median(ratios).toFixed(2).padStart(6),
      rangeOf(ratios).padEnd(24),
      bound === undefined ? '' : `required: ${bound.words}`,
    ];
    return `  ${columns.join(' ')}`.trimEnd();
  });
}

/** A server that got less of a core than this waited for something else: for the disk, or for other processes. */
const cpuShareMin = 0.8;

/** What to say of figures that were not the servers' own doing; nothing if they were. */
export function doubtLines(servers: readonly Rounds[]): string[] {
  const starved = servers.filter(
    ({ figures }) => median(figures.map(({ serverCpu }) => serverCpu)) < cpuShareMin,
  );
  if (starved.length === 0) return [];
  const names = starved.map(({ name }) => name).join(', ');
  return [
    `  DOUBTFUL: ${names} had less than ${cpuShareMin * 100} % of a core, so waiting was measured and the ratios say little.`,
  ];
}

/** The memory of a service, next to what is required. */
export function memoryLine(name: string, filings: number, { now, peak }: ResidentMb): string {
  const mb = (value: number) => (Number.isNaN(value) ? 'unknown here' : `${Math.round(value)} MB`);
  const max = ['postgres', 'two', 'one'].includes(name) ? postgresResidentMbMax : residentMbMax;
  return `Resident memory of ${name} with ${filings} filings: ${mb(now)} (required: below ${max} MB), at its highest ${mb(peak)}`;
}

/** How long a service takes to start, next to what is required. */
export function startLine(name: string, filings: number, readyMs: number): string {
  return `Start of ${name} with ${filings} filings: ready after ${Math.round(readyMs)} ms (required: below ${readyMsMax} ms)`;
}

/** Sends the same requests to servers in rounds. `prepare` builds them before each round; `after` follows each sending, unmeasured. */
export async function measureRounds(
  servers: readonly Server[],
  rounds: number,
  prepare: () => Promise<void>,
  send: (server: Server) => Promise<Sent>,
  after: (server: Server) => Promise<void> = async () => {},
): Promise<Rounds[]> {
  const figures = new Map(servers.map((server): [Server, Figures[]] => [server, []]));
  for (let round = 0; round < rounds; round += 1) {
    await prepare();
    // Each round begins with another server, since what one leaves to the disk slows down the next.
    const first = round % servers.length;
    for (const server of [...servers.slice(first), ...servers.slice(0, first)]) {
      const before = server.cpuTimes();
      const sent = await send(server);
      figures.get(server)?.push(figuresOf(sent, cpuBetween(before, server.cpuTimes())));
      await after(server);
    }
  }
  return Array.from(figures, ([{ name }, measured]) => ({ name, figures: measured }));
}
