import { startLoad } from './generator.ts';
import { figuresOf, serverLine } from './measurements.ts';
import { cpuBetween } from './process-usage.ts';
import type { Report } from './report.ts';
import type { Server } from './servers.ts';
import { publicYardsticks, startPublicServers } from './yardstick-servers.ts';

/** The rates at which requests are due, and how long each is offered. */
export interface LoadPlan {
  readonly ratesPerS: readonly number[];
  readonly seconds: number;
}

/** Enough for 25,000 requests a second that take 10 ms each. */
const connections = 256;

/** A server that responds to a smaller share of the requests in their time gets no higher rate. */
const answeredMin = 0.75;

const workloads = ['filing', 'provenance'] as const;

/**
 * Measures servers with requests that are due at fixed rates. A rate ends when all its requests are answered, so the
 * times at a rate beyond a server's capacity depend on how long it was offered.
 */
export async function measureOfferedLoad(
  { ratesPerS, seconds }: LoadPlan,
  dir: string,
  print: (text: string) => void,
  report: Report,
): Promise<void> {
  const servers = await startPublicServers(dir, publicYardsticks);
  const [{ credentials }] = servers as [Server];
  const load = startLoad();
  const filed = { year: new Date().getUTCFullYear(), last: Math.round((ratesPerS[0] ?? 0) * seconds) };
  for (const workload of workloads) {
    const prepare = (requests: number) =>
      load.prepare({ workload, requests, filed, credentials: [credentials] });
    await prepare(filed.last);
    for (const server of servers) await load.send(server, 'public', connections);
    let taking = servers;
    for (const offeredPerS of ratesPerS) {
      if (taking.length === 0) break;
      await prepare(Math.round(offeredPerS * seconds));
      print(`\n${workload}: ${offeredPerS} requests/s offered for ${seconds} s, ${connections} connections`);
      const overloaded = new Set<Server>();
      for (const server of taking) {
        const before = server.cpuTimes();
        const sent = await load.send(server, 'public', connections, offeredPerS);
        const figures = figuresOf(sent, cpuBetween(before, server.cpuTimes()));
        print(serverLine(server.name, [figures]));
        report.offeredLoad.push({ server: server.name, workload, offeredPerS, ...figures });
        if (figures.requestsPerS < answeredMin * offeredPerS) overloaded.add(server);
      }
      // The next rate begins with another server, since what one leaves to the disk slows down the next.
      taking = [...taking.slice(1), ...taking.slice(0, 1)].filter((server) => !overloaded.has(server));
    }
  }
}
