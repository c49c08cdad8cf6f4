import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { endChildren, killChildren } from './children.ts';
import { type Filed, type Load, type Sent, startLoad, type Workload, workloads } from './generator.ts';
import { comparisonLines, measureRounds, mediansOf, memoryLine, startLine } from './measurements.ts';
import { measureMemory } from './memory.ts';
import { measureNeighbours } from './neighbours.ts';
import { measureOfferedLoad } from './offered-load.ts';
import { measureOldSnapshot } from './old-snapshot.ts';
import { liveOrders } from './order-lives.ts';
import { type Plan, type PlannedSending, readPlan } from './plan.ts';
import { type Report, writeReport } from './report.ts';
import { measureServedLog } from './served-log.ts';
import { type ListenerName, ownProject, type Server, startOnPostgres, startService } from './servers.ts';
import { measureSize } from './size.ts';
import { measureWebhooks } from './webhooks.ts';
import { missingYardsticks, publicYardsticks, startYardstick } from './yardstick-servers.ts';

/** Connections over which servers are warmed up. */
const usualConnections = 64;

const calls = {
  filing: { listener: 'public', title: 'POST /api/v1/filing' },
  keyed: { listener: 'public', title: 'POST /api/v1/filing with Idempotency-Key' },
  provenance: { listener: 'public', title: 'GET /api/v1/provenance/{filingNo}' },
  typed: { listener: 'internal', title: 'CreateFiling over Connect' },
} as const satisfies Record<Workload, { listener: ListenerName; title: string }>;

const print = (text: string) => process.stdout.write(`${text}\n`);

/** All that runs, and how many filings each server was sent. */
interface Bench {
  /** On PostgreSQL, of this checkout, of the older one: as far as the plan has them. The first is compared with all others. */
  readonly services: readonly Server[];
  readonly others: readonly Server[];
  readonly load: Load;
  readonly filed: Filed;
  readonly filings: Map<Server, number>;
}

/** Starts the servers that a plan asks for, with new data in a folder. */
async function start(plan: Plan, dir: string): Promise<Bench> {
  const dirOf = (name: string) => join(dir, name);
  const starting: Promise<Server>[] = [
    ...(plan.postgres
      ? startAllOnPostgres(plan, dir)
      : [startService('service', ownProject, dirOf('service'))]),
    ...(plan.old === undefined || plan.postgres ? [] : [startService('old', plan.old, dirOf('old'))]),
  ];
  const services = await Promise.all(starting);
  const [{ credentials }] = services as [Server];
  const listeners = new Set<ListenerName>(plan.workloads.map((workload) => calls[workload].listener));
  const yardsticks = plan.postgres
    ? []
    : [
        ...(listeners.has('public') ? publicYardsticks : []),
        ...(listeners.has('internal') ? ['empty-handler'] : []),
      ];
  const others = await Promise.all(yardsticks.map((name) => startYardstick(name, dirOf(name), credentials)));
  const filed = { year: new Date().getUTCFullYear(), last: plan.warmUp };
  return { services, others, load: startLoad(), filed, filings: new Map() };
}

/** Starts two instances and one, or the service on PostgreSQL and on SQLite, and that of an older checkout on PostgreSQL. */
function startAllOnPostgres({ two, standby, old }: Plan, dir: string): Promise<Server>[] {
  const start = (name: string, options = {}) =>
    startOnPostgres(name, join(dir, name), { standby, ...options });
  if (two) return [start('two', { two }), start('one')];
  return [
    start('postgres'),
    startService('sqlite', ownProject, join(dir, 'sqlite')),
    ...(old === undefined ? [] : [start('old', { projectDir: old })]),
  ];
}

/** Does the plan and prints what it shows. */
async function run(plan: Plan, dir: string): Promise<void> {
  print(`Data in ${dir}, Node ${process.version}, ${availableParallelism()} cores, ${plan.rounds} rounds`);
  for (const line of missingYardsticks) print(line);
  const report: Report = { closedLoop: [], offeredLoad: [], size: [], states: [] };
  if (plan.workloads.length > 0 || plan.orders !== undefined) await runCalls(plan, dir, report);
  await runOthers(plan, dir);
  if (plan.load !== undefined) await measureOfferedLoad(plan.load, join(dir, 'load'), print, report);
  if (plan.size !== undefined) await measureSize(plan.size, join(dir, 'size'), print, report);
  if (plan.memory !== undefined) await measureMemory(plan.memory, join(dir, 'memory'), print);
  if (plan.json !== undefined) writeReport(plan.json, report);
}

/** Measures what has servers and figures of its own. */
async function runOthers(plan: Plan, dir: string): Promise<void> {
  const [sending] = plan.sendings;
  if (sending === undefined) return;
  const { logLeaves: leaves, webhookEvents: events, neighbourEvents, rounds, old } = plan;
  if (plan.oldSnapshot) await measureOldSnapshot({ rounds, sending }, dir, print);
  if (leaves !== undefined) await measureServedLog({ leaves, rounds, sending }, dir, print);
  if (events !== undefined) await measureWebhooks({ events, rounds, sending, old }, dir, print);
  if (neighbourEvents !== undefined) await measureNeighbours({ events: neighbourEvents, rounds }, dir, print);
}

/** Compares the servers. */
async function runCalls(plan: Plan, dir: string, report: Report): Promise<void> {
  const bench = await start(plan, dir);
  // The answers about provenance need filings.
  const warming = new Set<Workload>(plan.workloads);
  if (warming.has('provenance')) warming.add('filing');
  for (const workload of workloads) {
    if (warming.has(workload)) await warmUp(bench, workload, plan.warmUp);
  }
  for (const workload of plan.workloads) {
    for (const sending of plan.sendings) await measure(bench, workload, sending, plan.rounds, report);
  }
  if (plan.orders !== undefined) await measureOrders(bench, plan.orders, plan.rounds);
  for (const service of bench.services) {
    const filings = await fill(bench, service, plan.filings);
    print(memoryLine(service.name, filings, service.residentMb()));
    print(startLine(service.name, filings, await service.restart()));
  }
}

/** The servers that have the listener of a workload, the service first. Only the services have idempotency keys. */
function serversFor({ services, others }: Bench, workload: Workload): Server[] {
  if (workload === 'keyed') return [...services];
  return [...services, ...others].filter(({ ports }) => ports[calls[workload].listener] !== undefined);
}

async function prepare(bench: Bench, workload: Workload, requests: number, servers: readonly Server[]) {
  const credentials = [...new Set(servers.map((server) => server.credentials))];
  await bench.load.prepare({ workload, requests, filed: bench.filed, credentials });
}

/** Sends what was prepared to a server. */
async function send(bench: Bench, workload: Workload, server: Server, connections: number): Promise<Sent> {
  const sent = await bench.load.send(server, calls[workload].listener, connections);
  if (workload !== 'provenance') bench.filings.set(server, (bench.filings.get(server) ?? 0) + sent.requests);
  return sent;
}

/** Warms all servers up alike, and makes sure that they answer with the same members. */
async function warmUp(bench: Bench, workload: Workload, requests: number): Promise<void> {
  const servers = serversFor(bench, workload);
  await prepare(bench, workload, requests, servers);
  let members: string | undefined;
  for (const server of servers) {
    const sent = await send(bench, workload, server, usualConnections);
    members ??= sent.members;
    if (sent.members !== members)
      throw new Error(`The server ${server.name} answers ${sent.members}, and not ${members}.`);
  }
}

async function measure(
  bench: Bench,
  workload: Workload,
  { connections, requests }: PlannedSending,
  rounds: number,
  report: Report,
): Promise<void> {
  const servers = serversFor(bench, workload);
  const measured = await measureRounds(
    servers,
    rounds,
    () => prepare(bench, workload, requests, servers),
    (server) => send(bench, workload, server, connections),
  );
  print(`\n${calls[workload].title}; connections: ${connections}, requests a round: ${requests}`);
  for (const line of comparisonLines(measured, connections, workload)) print(line);
  for (const { name, figures } of measured)
    report.closedLoop.push({ server: name, workload, connections, ...mediansOf(figures) });
}

/** Measures how long orders take that follow each other. */
async function measureOrders({ services }: Bench, orders: number, rounds: number): Promise<void> {
  const send = (server: Server) => liveOrders(server, orders);
  const measured = await measureRounds(services, rounds, async () => {}, send);
  print(
    `\nAn order: file, open, release, read the provenance; one after the other, orders a round: ${orders}`,
  );
  for (const line of comparisonLines(measured, 1, 'orders')) print(line);
}

/** Files until a service has so many filings, at least; how many it has. */
async function fill({ load, filings: filed }: Bench, service: Server, filings: number): Promise<number> {
  const before = filed.get(service) ?? 0;
  await load.file(service, filings - before);
  return Math.max(before, filings);
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
    await run(plan, dir);
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
