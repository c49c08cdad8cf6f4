import { artwork, escrowTerms } from '../test/support/samples.ts';
import type { Sent } from './generator.ts';
import { percentile } from './measurements.ts';
import type { Server } from './servers.ts';
import { openCalls } from './signed-calls.ts';

/** Sees orders through on a server, one after the other: a filing, its order, the release, and the provenance after it. */
export async function liveOrders({ ports, credentials, name }: Server, lives: number): Promise<Sent> {
  const calls = openCalls(ports.public);
  const livesMs: number[] = [];
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  try {
    for (let life = 0; life < lives; life += 1) {
      const key = credentials.keys[life % credentials.keys.length];
      if (key === undefined) throw new Error('There are no keys.');
      const call = async (method: string, target: string, content?: object) => {
        const { status, body } = await calls.send(key, method, target, content);
        if (status !== 200) throw new Error(`The server ${name} did not answer 200 but ${status}: ${body}`);
        return JSON.parse(body);
      };
      const begunMs = performance.now();
      const { filingNo } = await call('POST', '/api/v1/filing', artwork);
      const { escrowId } = await call('POST', '/api/v1/escrow', escrowTerms(filingNo));
      await call('POST', `/api/v1/escrow/${escrowId}/release`);
      await call('GET', `/api/v1/provenance/${filingNo}`);
      livesMs.push(performance.now() - begunMs);
    }
  } finally {
    calls.end();
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    ...{ requests: lives, seconds, cpuS: (user + system) / 1e6 },
    ...{
      p50Ms: percentile(livesMs, 0.5),
      p99Ms: percentile(livesMs, 0.99),
      p999Ms: percentile(livesMs, 0.999),
    },
    ...{ refused: 0, firstRefusal: '', members: '' },
  };
}
