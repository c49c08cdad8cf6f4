import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { signedHeaders } from '../src/client/sign.ts';
import { openRegistry } from '../src/registry.ts';
import { readConfig } from '../src/settings/config.ts';
import { executorOf } from '../src/store/store.ts';
import { type IssuedPlatform, issueInto } from '../test/support/issued.ts';
import { artwork } from '../test/support/samples.ts';
import { ownProject, startService } from './servers.ts';

/** How much is done. */
export interface NeighbourPlan {
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
  const service = await startService('service', ownProject, dataDir, {
    credentials: { keys: platforms, token },
  });
  const calls = openCalls(service.ports.public);
  const call = async (method: string, target: string, content?: object) =>
    JSON.parse((await calls.send(busy, method, target, content)).body);
  try {
    const { webhook } = await call('POST', '/api/v1/webhooks', { url: 'https://hooks.invalid/' });
    const path = `/api/v1/webhooks/${webhook.webhookId}`;
    await call('PATCH', path, { status: 'DISABLED' });
    await fill(dataDir, busy, events);
    await call('PATCH', path, { status: 'ENABLED' });
    const since = new Date(Date.now() - 86_400_000).toISOString();
    const works: Record<string, Work> = {
      [`${pagesPerS} pages a second of 100 large filings`]: paced(() =>
        calls.drain(busy, 'GET', '/api/v1/filing?pageSize=100'),
      ),
      [`redeliver over ${events} events`]: repeated(() =>
        calls.drain(busy, 'POST', `${path}/redeliver`, { since }),
      ),
    };
    print(`\nNeighbours: ${neighbours} platforms, ${callsPerS} calls a second; ${rounds} rounds`);
    await measure(calls, others);
    for (const [what, work] of Object.entries(works)) {
      const [quietMs, busyMs]: [number[], number[]] = [[], []];
      const answered = new Map<number, number>();
      for (let round = 0; round < rounds; round += 1) {
        quietMs.push(...(await measure(calls, others)));
        const stop = work(answered);
        await measure(calls, others)
          .then((ms) => busyMs.push(...ms))
          .finally(stop);
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

/** Begins calls of the busy platform and counts their answers by status; what it returns ends them. */
type Work = (answered: Map<number, number>) => () => Promise<void>;

const count = (answered: Map<number, number>, status: number) =>
  answered.set(status, (answered.get(status) ?? 0) + 1);

/** Calls at a steady rate, whatever the answers take. */
function paced(call: () => Promise<number>): Work {
  return (answered) => {
    const underWay: Promise<unknown>[] = [];
    const timer = setInterval(
      () => underWay.push(call().then((status) => count(answered, status))),
      1_000 / pagesPerS,
    );
    return async () => {
      clearInterval(timer);
      await Promise.all(underWay);
    };
  };
}

/** Calls one after the other, some at a time. */
function repeated(call: () => Promise<number>): Work {
  return (answered) => {
    let isStopped = false;
    async function repeat(): Promise<void> {
      while (!isStopped) {
        const status = await call();
        count(answered, status);
        if (status === 429) await delay(100);
      }
    }
    const all = Promise.all(Array.from({ length: redeliveries }, repeat));
    return async () => {
      isStopped = true;
      await all;
    };
  };
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

function percentile(ms: readonly number[], share: number): number {
  const sorted = [...ms].sort((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
}

const line = (what: string, ms: readonly number[]): string =>
  `  ${what.padEnd(42)} p50 ${percentile(ms, 0.5).toFixed(1)} ms   p99 ${percentile(ms, 0.99).toFixed(1)} ms`;

/** Has a platform file large works, beside the service. */
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

interface Answer {
  readonly status: number;
  readonly body: string;
}

type Send<T> = (by: IssuedPlatform, method: string, target: string, content?: object) => Promise<T>;

/** Signed calls over connections that are kept. */
interface Calls {
  readonly send: Send<Answer>;
  /** Reads the answer without looking at it, so that the other calls of this process are not held up; its status. */
  readonly drain: Send<number>;
  end(): void;
}

function openCalls(port: number | undefined): Calls {
  const agent = new Agent({ keepAlive: true });
  const begin: Send<IncomingMessage> = async (by, method, path, content) => {
    const body = content === undefined ? '' : JSON.stringify(content);
    const type = content === undefined ? {} : { 'Content-Type': 'application/json' };
    const headers = { ...type, ...signedHeaders(by, { method, target: path, body }) };
    const sent = request({ host: '127.0.0.1', port, agent, method, path, headers });
    sent.end(body);
    const [response] = await once(sent, 'response');
    return response;
  };
  return {
    send: async (...sent) => {
      const response = await begin(...sent);
      return { status: response.statusCode ?? 0, body: await text(response) };
    },
    drain: async (...sent) => {
      const response = await begin(...sent);
      response.resume();
      await once(response, 'end');
      return response.statusCode ?? 0;
    },
    end: () => agent.destroy(),
  };
}
