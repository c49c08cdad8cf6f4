import type { Sent } from './orders.ts';

/** What one sending to one server showed. */
export interface Figures {
  readonly requestsPerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Share of one core that the server and the load generator used. */
  readonly serverCpu: number;
  readonly loadCpu: number;
}

/** What must be reached; it is printed next to what is, and decides nothing. */
export const required = { ratioMin: 0.6, residentMbMax: 250 } as const;

/** The figures of a sending during which the server used so much CPU time. */
export function figuresOf({ requests, seconds, p50Ms, p99Ms, cpuS }: Sent, serverCpuS: number): Figures {
  return {
    requestsPerS: requests / seconds,
    p50Ms,
    p99Ms,
    serverCpu: serverCpuS / seconds,
    loadCpu: cpuS / seconds,
  };
}

/** The median of each figure by itself. */
export function medians(all: readonly Figures[]): Figures {
  const of = (name: keyof Figures) => median(all.map((figures) => figures[name]));
  return {
    requestsPerS: of('requestsPerS'),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    serverCpu: of('serverCpu'),
    loadCpu: of('loadCpu'),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = low] = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1);
  return (low + high) / 2;
}

/** The figures of a server in a line. */
export function line(name: string, { requestsPerS, p50Ms, p99Ms, serverCpu, loadCpu }: Figures): string {
  const share = (cpu: number) => (Number.isNaN(cpu) ? 'unknown' : `${Math.round(cpu * 100)} %`);
  return [
    `  ${name.padEnd(8)}${String(Math.round(requestsPerS)).padStart(7)} requests/s`,
    `p50 ${p50Ms.toFixed(1)} ms`,
    `p99 ${p99Ms.toFixed(1)} ms`,
    `CPU ${share(serverCpu)} of a core, load generator ${share(loadCpu)}`,
  ].join('   ');
}

/** The service's share of the floor, next to what is required. */
export function ratioLine(service: readonly Figures[], floor: readonly Figures[]): string {
  const ratio = medians(service).requestsPerS / medians(floor).requestsPerS;
  const rounds = service.map(({ requestsPerS }, round) => requestsPerS / (floor[round]?.requestsPerS ?? 0));
  const range = `rounds ${Math.min(...rounds).toFixed(2)} to ${Math.max(...rounds).toFixed(2)}`;
  return `  ratio   ${ratio.toFixed(2).padStart(7)} (required: at least ${required.ratioMin.toFixed(2)})   ${range}`;
}

/** A server that got less of a core than this waited for something else: for the disk, or for other processes. */
const cpuShareMin = 0.8;

/** What to say of figures that were not the servers' own doing; undefined if they were. */
export function doubtLine(servers: readonly Figures[]): string | undefined {
  return servers.some(({ serverCpu }) => serverCpu < cpuShareMin)
    ? `  DOUBTFUL: a server had less than ${cpuShareMin * 100} % of a core, so waiting was measured and the ratio says little.`
    : undefined;
}

/** The service's memory, next to what is required. */
export function memoryLine(filings: number, { now, peak }: { now: number; peak: number }): string {
  const mb = (value: number) => (Number.isNaN(value) ? 'unknown here' : `${Math.round(value)} MB`);
  return `Resident memory of the service with ${filings} filings: ${mb(now)} (required: below ${required.residentMbMax} MB), at its highest ${mb(peak)}`;
}
