import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports that systems do not assign to port 0, so that a free one stays free. */
const [lowest, beyond] = [10_000, 32_000];
const triesMax = 100;

/** Returns a free address of this machine, host:port. */
export async function freeAddress(): Promise<string> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const port = randomInt(lowest, beyond);
    const server = createServer();
    const listening = once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.listen(port, '127.0.0.1');
    if (!(await listening)) continue;
    server.close();
    await once(server, 'close');
    return `127.0.0.1:${port}`;
  }
  throw new Error(`none of ${triesMax} ports was free`);
}

/** Settings with which each listener takes a free port. */
export const anyAddresses = {
  ARTSEAL_PUBLIC_ADDR: '127.0.0.1:0',
  ARTSEAL_INTERNAL_ADDR: '127.0.0.1:0',
  ARTSEAL_METRICS_ADDR: '127.0.0.1:0',
} as const;
