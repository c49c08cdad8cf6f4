import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiCredentials } from '../src/client/sign.ts';
import { makeAuthority } from '../test/support/certificates.ts';
import { artwork } from '../test/support/samples.ts';
import { startLoad } from './generator.ts';
import { comparisonLines, measureRounds, median, percentile } from './measurements.ts';
import type { PlannedSending } from './plan.ts';
import { cpuBetween } from './process-usage.ts';
import { type Arrivals, type Receivers, startReceivers } from './receiving.ts';
import { ownProject, type Server, startService } from './servers.ts';
import { openCalls } from './signed-calls.ts';

interface WebhookPlan {
  /** Events that happen as fast as the rates of their platforms allow. */
  readonly events: number;
  readonly rounds: number;
  /** Filings of a round in which filing is measured. */
  readonly sending: PlannedSending;
  /** The folder of another checkout, whose filing is measured as well. */
  readonly old: string | undefined;
}

/** Platforms that have endpoints, as many as they may; one of each is dead where some are: it takes requests and never answers. */
const platforms = 10;
const healthyOfEach = 9;
const deadOfEach = 1;

/** Filings a second of all these platforms: so many that all of them come near their rates, and so few that nothing is late for long. */
const [fastPerS, slowPerS] = [1_500, 50];
/** Of so many events that happen fast, one happens slowly. */
const slowPart = 50;

const connections = 64;

/**
 * Measures the delay of webhooks after their filings, with all endpoints alive and with some
 * dead, and the rate of signed filing meanwhile.
 */
export async function measureWebhooks(
  plan: WebhookPlan,
  dir: string,
  print: (text: string) => void,
): Promise<void> {
  const cleanings: (() => void)[] = [];
  try {
    const authority = makeAuthority({ after: (clean) => cleanings.push(clean as () => void) });
    const receivers = await startReceivers(
      authority.issue('receivers'),
      platforms * healthyOfEach,
      platforms * deadOfEach,
    );
    const settings = {
      ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.1',
      ARTSEAL_WEBHOOK_CA: authority.certificateFile,
    };
    const service = await startService('webhooks', ownProject, join(dir, 'webhooks'), { settings });
    print(`\nWebhooks: ${platforms} platforms, ${healthyOfEach} endpoints of each that answer`);
    await addWebhooks(service, receivers.ports.healthy);
    const alive = await measureLag('all alive', service, receivers, plan.events, print);
    await addWebhooks(service, receivers.ports.dead);
    const beside = await measureLag(
      `${platforms * deadOfEach} more dead`,
      service,
      receivers,
      plan.events,
      print,
    );
    print(
      `  with dead ones ÷ all alive, until the last of those in one go arrived   ${(beside / alive).toFixed(2)}`,
    );
    await measureFiling(service, receivers, plan, dir, print);
  } finally {
    for (const clean of cleanings) clean();
  }
}

/** Has platforms with endpoints post, in turn, over kept connections. Returns what is answered, which must be 200. */
function openPosts({ ports, credentials }: Server) {
  const calls = openCalls(ports.public);
  return {
    post: async (place: number, path: string, content: object): Promise<Record<string, string>> => {
      const key = credentials.keys[place % platforms] as ApiCredentials;
      const { status, body } = await calls.send(key, 'POST', path, content);
      if (status !== 200) throw new Error(`${path} is answered with ${status}: ${body}`);
      return JSON.parse(body);
    },
    end: calls.end,
  };
}

/** Gives each platform its part of receivers as endpoints. */
async function addWebhooks(service: Server, ports: readonly number[]): Promise<void> {
  const calls = openPosts(service);
  for (const [place, port] of ports.entries()) {
    await calls.post(place, '/api/v1/webhooks', { url: `https://127.0.0.1:${port}/` });
  }
  calls.end();
}

/**
 * Measures the delay of webhooks, for fast and for slow filings. Returns how long after the last fast filing its event arrived,
 * in seconds.
 */
async function measureLag(
  title: string,
  service: Server,
  receivers: Receivers,
  events: number,
  print: (text: string) => void,
): Promise<number> {
  async function measure(words: string, perS: number, filings: number): Promise<number> {
    const before = service.cpuTimes();
    const answered = await fileAt(service, perS, filings);
    const arrivals = timesOf(await receivers.gather(filings * healthyOfEach));
    const { totalS } = cpuBetween(before, service.cpuTimes());
    // The response may be read later than the receiver got the event.
    const lagsMs = arrivals.map(([no, atMs]) => Math.max(0, atMs - (answered.get(no) ?? Number.NaN)));
    const lag = (share: number) => `${Math.round(percentile(lagsMs, share))} ms`;
    const lagS = lastAfterS(arrivals, newest([...answered.values()]));
    const columns = [
      `  ${title}, ${filings} events ${words}: ${lagsMs.length} deliveries`,
      `lag p50 ${lag(0.5)}, p99 ${lag(0.99)}`,
      `the last ${lagS.toFixed(1)} s after the last filing`,
      `CPU a delivery ${Math.round((totalS / lagsMs.length) * 1e6)} µs`,
    ];
    print(columns.join('   '));
    return lagS;
  }
  const lagS = await measure('in one go', fastPerS, events);
  await measure('a few a second', slowPerS, Math.ceil(events / slowPart));
  return lagS;
}

/** The filings of these arrivals, with their times. */
const timesOf = (arrivals: Arrivals): [filingNo: string, atMs: number][] =>
  Object.values(arrivals).flatMap((own) => Object.entries(own));

const newest = (timesMs: readonly number[]): number => timesMs.reduce((a, b) => Math.max(a, b), 0);

/** How long after a time the last event arrived, in seconds; 0 if it was there before. */
const lastAfterS = (arrivals: ReturnType<typeof timesOf>, afterMs: number): number =>
  Math.max(0, newest(arrivals.map(([, atMs]) => atMs)) - afterMs) / 1_000;

const nowMs = (): number => performance.timeOrigin + performance.now();

/** Files so much a second; when each filing was answered, Unix milliseconds. */
async function fileAt(service: Server, perS: number, filings: number): Promise<ReadonlyMap<string, number>> {
  const calls = openPosts(service);
  const answered = new Map<string, number>();
  const startedMs = nowMs();
  let next = 0;
  async function work(): Promise<void> {
    for (let place = next++; place < filings; place = next++) {
      const waitMs = startedMs + (place / perS) * 1_000 - nowMs();
      if (waitMs > 0) await delay(waitMs);
      const { filingNo = '' } = await calls.post(place, '/api/v1/filing', artwork);
      answered.set(filingNo, nowMs());
    }
  }
  await Promise.all(Array.from({ length: connections }, work));
  calls.end();
  return answered;
}

/** Measures signed filing beside webhooks, and without them. */
async function measureFiling(
  service: Server,
  receivers: Receivers,
  { sending: { connections, requests }, rounds, old }: WebhookPlan,
  dir: string,
  print: (text: string) => void,
): Promise<void> {
  const without = await startService('no-webhooks', ownProject, join(dir, 'no-webhooks'));
  const others = old === undefined ? [] : [await startService('old', old, join(dir, 'old-filing'))];
  const servers = [service, without, ...others];
  const load = startLoad();
  const lagS: number[] = [];
  const filed = { year: new Date().getUTCFullYear(), last: 1 };
  const credentials = servers.map((server) => server.credentials);
  const events = eventsOf(service, requests);
  const measure = (count: number) =>
    measureRounds(
      servers,
      count,
      () => load.prepare({ workload: 'filing', requests, filed, credentials }),
      (server) => load.send(server, 'public', connections),
      async (server) => {
        if (server !== service) return;
        const endedMs = nowMs();
        const arrivals = timesOf(await receivers.gather(events * healthyOfEach));
        lagS.push(lastAfterS(arrivals, endedMs));
      },
    );
  // The first round warms up.
  await measure(1);
  lagS.length = 0;
  const measured = await measure(rounds);
  print(
    `  POST /api/v1/filing beside webhooks, ${events} events a round; connections: ${connections}, requests a round: ${requests}`,
  );
  for (const line of comparisonLines(measured, connections)) print(line);
  print(`  all events of a round had arrived ${median(lagS).toFixed(1)} s after its end`);
}

/** Returns how many of `filings`, which platforms file by turns, are of platforms with endpoints. */
function eventsOf({ credentials: { keys } }: Server, filings: number): number {
  return Math.floor(filings / keys.length) * platforms + Math.min(platforms, filings % keys.length);
}
