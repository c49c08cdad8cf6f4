import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readConfig } from '../src/config/config.ts';
import { openRegistry } from '../src/operations/registry.ts';
import { executorOf } from '../src/store/store.ts';
import { type IssuedPlatform, issueInto } from '../test/support/issued.ts';
import { artwork } from '../test/support/samples.ts';
import type { BusyOrder, BusyOutcome, BusyWork } from './busy-platform.ts';
import { adopt, ask } from './children.ts';
import { percentile } from './measurements.ts';
import { ownProject, startService } from './servers.ts';
import { type Calls, openCalls } from './signed-calls.ts';

interface NeighbourPlan {
  /** Large filings of the busy platform, each of which is an event. */
  readonly events: number;
  /** How often a quiet phase and a busy one follow each other. */
  readonly rounds: number;
}

/** Platforms beside the busy one, how many calls a second they make together, and how many in a phase. */
const neighbours = 8;
const callsPerS = 80;
const callsOfPhase = 160;
/** What the busy platform does: list pages a second, or redeliveries under way. */
const pagesPerS = 48;
const redeliveries = 4;
/** The most that the neighbours' p99 may be, as a multiple of what it is in the quiet phases. */
const ratioMax = 3;
/** How long the busy platform may take to begin or end, in milliseconds. */
const orderMs = 60_000;

const large = {
  author: '齐'.repeat(200),
  era: '齐'.repeat(200),
  size: '齐'.repeat(200),
  material: '齐'.repeat(200),
  condition: '齐'.repeat(2_000),
  price: 1n,
};

/**
 * Measures how long the calls of some platforms take while another one is quiet and while it is busy, in turns: it reads pages
 * of large filings, and then it has many events sent again.
 */
export async function measureNeighbours(
  { events, rounds }: NeighbourPlan,
  dir: string,
  print: (text: string) => void,
): Promise<void> {
  const dataDir = join(dir, 'neighbours');
  const { platforms, token } = await issueInto(dataDir, neighbours + 1);
  const [busy, ...others] = platforms as [IssuedPlatform, ...IssuedPlatform[]];
  await fill(dataDir, busy, events);
  const service = await startService('service', ownProject, dataDir, {
    credentials: { keys: platforms, token },
  });
  const calls = openCalls(service.ports.public);
  const call = async (method: string, target: string, content?: object) =>
    JSON.parse((await calls.send(busy, method, target, content)).body);
  try {
    const { webhook } = await call('POST', '/api/v1/webhooks', { url: 'https://hooks.invalid/' });
    const path = `/api/v1/webhooks/${webhook.webhookId}`;
    const since = new Date(Date.now() - 86_400_000).toISOString();
    const by = { port: service.ports.public, platform: busy };
    const works: Record<string, BusyWork> = {
      [`${pagesPerS} pages a second of 100 large filings`]: {
        ...{ ...by, method: 'GET', target: '/api/v1/filing?pageSize=100' },
        pace: { perS: pagesPerS },
      },
      [`redeliver over ${events} events`]: {
        ...{ ...by, method: 'POST', target: `${path}/redeliver`, content: { since } },
        pace: { underWay: redeliveries },
      },
    };
    // A process of its own: what it reads and collects must not hold up the calls that are timed.
    const child = adopt(fork(join(import.meta.dirname, 'busy-platform.ts')));
    print(`\nNeighbours: ${neighbours} platforms, ${callsPerS} calls a second; ${rounds} rounds`);
    await measure(calls, others);
    for (const [what, work] of Object.entries(works)) {
      const [quietMs, busyMs]: [number[], number[]] = [[], []];
      const answered = new Map<number, number>();
      for (let round = 0; round < rounds; round += 1) {
        quietMs.push(...(await measure(calls, others)));
        const end = await begin(child, work);
        busyMs.push(...(await measure(calls, others)));
        for (const [status, count] of (await end()).answered) {
          answered.set(status, (answered.get(status) ?? 0) + count);
        }
      }
      print(line('quiet', quietMs));
      const answers = [...answered].map(([status, count]) => `${count} × ${status}`).join(', ');
      print(`${line(what, busyMs)}   answered ${answers}`);
      const ratio = percentile(busyMs, 0.99) / percentile(quietMs, 0.99);
      print(`  p99 ÷ quiet   ${ratio.toFixed(2)}   required: below ${ratioMax}`);
    }
  } finally {
    calls.end();
  }
}

/** Has the child make the calls of the busy platform; what it returns ends them, and counts their answers by status. */
async function begin(busy: ChildProcess, work: BusyWork): Promise<() => Promise<BusyOutcome>> {
  await ask<BusyOrder, object>(busy, { kind: 'begin', ...work }, 'The busy platform', orderMs);
  return () => ask<BusyOrder, BusyOutcome>(busy, { kind: 'end' }, 'The busy platform', orderMs);
}

/** How long each call of the neighbours takes from when it is due, in milliseconds; every other one of each files. */
async function measure(calls: Calls, platforms: readonly IssuedPlatform[]): Promise<number[]> {
  const begunMs = performance.now();
  const taken: Promise<number>[] = [];
  for (let nth = 0; nth < callsOfPhase; nth += 1) {
    const dueMs = begunMs + (nth * 1_000) / callsPerS;
    await delay(Math.max(0, dueMs - performance.now()));
    const by = platforms[nth % platforms.length] as IssuedPlatform;
    const isFiling = Math.floor(nth / platforms.length) % 2 === 0;
    const call = isFiling
      ? calls.send(by, 'POST', '/api/v1/filing', artwork)
      : calls.send(by, 'GET', '/api/v1/filing?pageSize=1');
    const took = call.then(({ status, body }) => {
      if (status !== 200) throw new Error(`A neighbour is answered ${body}`);
      return performance.now() - dueMs;
    });
    // It is thrown at the end, with the others.
    took.catch(() => {});
    taken.push(took);
  }
  return Promise.all(taken);
}

const line = (what: string, ms: readonly number[]): string =>
  `  ${what.padEnd(42)} p50 ${percentile(ms, 0.5).toFixed(1)} ms   p99 ${percentile(ms, 0.99).toFixed(1)} ms`;

/** Files large works of a platform, before the service starts. */
async function fill(dataDir: string, { caller: name }: IssuedPlatform, filings: number): Promise<void> {
  const { store } = await openRegistry(readConfig({ ARTSEAL_DATA_DIR: dataDir }), 'EXISTING');
  const execute = executorOf(store);
  const by = await execute({ kind: 'FindCaller', name });
  const atMs = Date.now();
  const at = { atMs, timestamp: `${new Date(atMs).toISOString().slice(0, 19)}+00:00` };
  for (let filed = 0; filed < filings; filed += 1)
    await execute({ kind: 'FileArtwork', artwork: large, at, by });
  await store.close();
}
