import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { builtCommit } from '../build/project.ts';
import type { Workload } from './generator.ts';
import type { Figures } from './measurements.ts';
import { publicYardsticks } from './yardstick-servers.ts';

/** Medians of the rounds of a server. */
export interface ClosedLoop extends Figures {
  readonly server: string;
  readonly workload: Workload;
  readonly connections: number;
}

/** The figures of a server at a rate. */
export interface OfferedLoad extends Figures {
  readonly server: string;
  readonly workload: Workload;
  readonly offeredPerS: number;
}

/** Medians of the rounds of a server that had so many filings at first. */
export interface Size extends Figures {
  readonly server: string;
  readonly workload: Workload;
  readonly filings: number;
}

/** The memory of a server with so many filings, and how long it takes to start again with them. */
export interface State {
  readonly server: string;
  readonly filings: number;
  readonly residentMb: number;
  readonly readyMs: number;
}

/** What a run of the bench showed. */
export interface Report {
  readonly closedLoop: ClosedLoop[];
  readonly offeredLoad: OfferedLoad[];
  readonly size: Size[];
  readonly states: State[];
}

/** A report in a file, with what it was measured on. */
export type WrittenReport = ReturnType<typeof withOrigin>;

/** Writes a report as JSON, with numbers of four digits. */
export function writeReport(file: string, report: Report): void {
  const short = (_: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
  writeFileSync(file, `${JSON.stringify(withOrigin(report), short, 2)}\n`);
}

function withOrigin(report: Report) {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: builtCommit(),
    node: process.version,
    go: publicYardsticks.includes('go')
      ? execFileSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).trim()
      : undefined,
    machine: {
      processor: cpus()[0]?.model ?? 'unknown',
      cores: availableParallelism(),
      memoryGb: Math.round(totalmem() / 1e9),
    },
    ...report,
  };
}
