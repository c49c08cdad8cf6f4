import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  endChildren,
  killChildren,
  type Load,
  type Server,
  startFloor,
  startLoad,
  startService,
} from './children.ts';
import { copyDataDir, makeDataDir } from './data-dir.ts';
import { doubtLine, type Figures, figuresOf, line, medians, memoryLine, ratioLine } from './figures.ts';
import { connections, type Filed, type Workload } from './orders.ts';

/** How much is done. */
interface Plan {
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  /** Requests to each server, a round and workload. */
  readonly requests: number;
  /** Filings in each server before anything is measured; they warm both servers up as well. */
  readonly seeds: number;
  /** Filings in the service when its memory is read, at least. */
  readonly filings: number;
}

/** Requests that are signed at a time while the service is filled: signatures are good for minutes alone. */
const signedAtOnce = 20_000;

const routes = {
  filing: 'POST /api/v1/filing',
  provenance: 'GET /api/v1/provenance/{filingNo}',
} as const satisfies Record<Workload, string>;

const print = (text: string) => process.stdout.write(`${text}\n`);

/** Reads the command line. Throws for what it does not know. */
function readPlan(words: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...words],
    options: {
      smoke: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      filings: { type: 'string' },
    },
  });
  const { smoke, only } = values;
  const count = (name: 'rounds' | 'filings', fallback: number, min: number) => {
    const number = Number(values[name] ?? fallback);
    if (!Number.isInteger(number) || number < min)
      throw new Error(`--${name} must be a whole number from ${min}.`);
    return number;
  };
  if (only !== undefined && only !== 'filing' && only !== 'provenance')
    throw new Error('--only must be filing or provenance.');
  return {
    workloads: only === undefined ? ['filing', 'provenance'] : [only],
    rounds: count('rounds', smoke ? 1 : 7, 1),
    requests: smoke ? 300 : 20_000,
    seeds: smoke ? 300 : 10_000,
    filings: count('filings', smoke ? 1_000 : 200_000, 0),
  };
}

/** Does the plan against two fresh servers in a folder, and prints what it shows. */
async function bench(plan: Plan, dir: string): Promise<void> {
  const dataDirs = { service: join(dir, 'service'), floor: join(dir, 'floor') };
  await makeDataDir(dataDirs.service);
  copyDataDir(dataDirs.service, dataDirs.floor);
  const service = await startService(dataDirs.service);
  const floor = await startFloor(dataDirs.floor);
  const load = startLoad(dataDirs.service);

  const { rounds, requests, seeds, workloads } = plan;
  print(
    `${rounds} rounds of ${requests} requests over ${connections} connections to each server, data in ${dir}, ` +
      `Node ${process.version}, ${availableParallelism()} cores`,
  );
  const filed: Filed = { year: new Date().getUTCFullYear(), last: seeds };
  for (const workload of ['filing', 'provenance'] as const) {
    await load.sign(workload, seeds, filed);
    const samples = [await load.send(service), await load.send(floor)].map(({ sample }) => membersOf(sample));
    if (samples[0] !== samples[1])
      throw new Error(`The servers answer differently: ${samples.join(' and ')}.`);
  }
  for (const workload of workloads) await measure(workload, plan, filed, { service, floor, load });

  const done = seeds + (workloads.includes('filing') ? rounds * requests : 0);
  for (let left = plan.filings - done; left > 0; left -= signedAtOnce) {
    await load.sign('filing', Math.min(left, signedAtOnce), filed);
    await load.send(service);
  }
  print(memoryLine(Math.max(done, plan.filings), service.residentMb()));
}

/** The names of an answer's members: both servers must do the same work. */
function membersOf(json: string): string {
  return Object.keys(JSON.parse(json)).sort().join();
}

async function measure(
  workload: Workload,
  { rounds, requests }: Plan,
  filed: Filed,
  { service, floor, load }: { service: Server; floor: Server; load: Load },
): Promise<void> {
  const figures: Record<Server['name'], Figures[]> = { service: [], floor: [] };
  for (let round = 0; round < rounds; round += 1) {
    await load.sign(workload, requests, filed);
    for (const server of [service, floor]) {
      const cpuBeforeS = server.cpuS();
      const sent = await load.send(server);
      figures[server.name].push(figuresOf(sent, server.cpuS() - cpuBeforeS));
    }
  }
  print(routes[workload]);
  for (const name of ['service', 'floor'] as const) print(line(name, medians(figures[name])));
  print(ratioLine(figures.service, figures.floor));
  const doubt = doubtLine([medians(figures.service), medians(figures.floor)]);
  if (doubt !== undefined) print(doubt);
}

/** Runs the bench with these words; the exit code, in which the clock has no say. */
async function main(words: readonly string[]): Promise<number> {
  let plan: Plan;
  try {
    plan = readPlan(words);
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.message : error}\n`);
    return 2;
  }
  const dir = mkdtempSync(join(tmpdir(), 'artseal-bench-'));
  const removeDir = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      killChildren();
      const leave = () => {
        removeDir();
        process.exit(1);
      };
      endChildren().then(leave, leave);
    });
  }
  try {
    await bench(plan, dir);
    return 0;
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.message : error}\n`);
    return 1;
  } finally {
    await endChildren();
    removeDir();
  }
}

process.exitCode = await main(process.argv.slice(2));
