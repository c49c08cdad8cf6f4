import { type Figures, figuresOf, type Rounds } from './measurements.ts';
import type { Sent } from './orders.ts';
import { cpuBetween } from './process-usage.ts';
import type { Server } from './servers.ts';

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
