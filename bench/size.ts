import { join } from 'node:path';
import { type Load, startLoad } from './generator.ts';
import { measureRounds, mediansOf, serverLine } from './measurements.ts';
import type { Report } from './report.ts';
import { ownProject, type Server, startService } from './servers.ts';
import { publicYardsticks, startYardstick } from './yardstick-servers.ts';

/** The numbers of filings that are compared, and the requests of a round. */
export interface SizePlan {
  readonly sizes: readonly number[];
  readonly requests: number;
  readonly rounds: number;
}

/** Connections over which calls are measured. */
const connections = 64;

/**
 * Measures what calls cost servers that have few filings and servers that have many, in alternation, and how much memory the
 * servers use then. Fastify is left out: it would take many minutes to file so much.
 */
export async function measureSize(
  plan: SizePlan,
  dir: string,
  print: (text: string) => void,
  report: Report,
): Promise<void> {
  const load = startLoad();
  for (const name of ['service', ...publicYardsticks.filter((yardstick) => yardstick !== 'fastify')]) {
    const servers = new Map<Server, number>();
    for (const size of plan.sizes) {
      const server = await start(name, join(dir, `${name}-${size}`), [...servers.keys()]);
      await load.file(server, size);
      servers.set(server, size);
    }
    await measureSizes(name, load, servers, plan, print, report);
  }
}

/** Starts a server. Hand-written ones have the keys of a service. */
async function start(name: string, dir: string, [first]: readonly Server[]): Promise<Server> {
  if (name === 'service') return startService(name, ownProject, dir);
  const credentials =
    first?.credentials ?? (await startService('service', ownProject, `${dir}-keys`)).credentials;
  return startYardstick(name, dir, credentials);
}

async function measureSizes(
  name: string,
  load: Load,
  servers: ReadonlyMap<Server, number>,
  { requests, rounds }: SizePlan,
  print: (text: string) => void,
  report: Report,
): Promise<void> {
  const year = new Date().getUTCFullYear();
  // Filings come last, since they add to the size.
  for (const workload of ['provenance', 'filing'] as const) {
    const send = async (server: Server) => {
      const filed = { year, last: servers.get(server) ?? 0 };
      await load.prepare({ workload, requests, filed, credentials: [server.credentials] });
      return load.send(server, 'public', connections);
    };
    // The first calls about provenance find nothing in memory that they need.
    for (const server of servers.keys()) await send(server);
    const measured = await measureRounds([...servers.keys()], rounds, async () => {}, send);
    print(`\n${workload} with so many filings; connections: ${connections}, requests a round: ${requests}`);
    for (const [place, filings] of [...servers.values()].entries()) {
      const figures = measured[place]?.figures ?? [];
      print(serverLine(`${name} ${filings}`, figures));
      report.size.push({ server: name, workload, filings, ...mediansOf(figures) });
    }
  }
  for (const [server, filings] of servers) {
    const { now: residentMb } = server.residentMb();
    const readyMs = await server.restart();
    print(
      `  ${name} ${filings}: resident memory ${Math.round(residentMb)} MB, ready after ${Math.round(readyMs)} ms`,
    );
    report.states.push({ server: name, filings, residentMb, readyMs });
  }
}
