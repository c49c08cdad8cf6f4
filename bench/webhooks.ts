import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ApiCredentials, signedHeaders } from '../src/client/sign.ts';
import { makeAuthority } from '../test/support/certificates.ts';
import { artwork } from '../test/support/samples.ts';
import { doubtLine, type Figures, figuresOf, ratioLines, serverLine } from './figures.ts';
import { startLoad } from './generator.ts';
import type { PlannedSending } from './plan.ts';
import { cpuBetween } from './process-usage.ts';
import { type Arrivals, type Receivers, startReceivers } from './receiving.ts';
import { ownProject, type Server, startService } from './servers.ts';

/** How much is sent. */
export interface WebhookPlan {
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
 * Measures what webhooks take: how far behind the filings that they tell of they arrive, with all endpoints alive and with some
 * dead, and what signed filing keeps of its figure while they are sent.
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
    await measureLag('all alive', service, receivers, plan.events, print);
    await addWebhooks(service, receivers.ports.dead);
    await measureLag(`${platforms * deadOfEach} more dead`, service, receivers, plan.events, print);
    await measureFiling(service, receivers, plan, dir, print);
  } finally {
    for (const clean of cleanings) clean();
  }
}

/** The platforms of a service that have endpoints. */
const sellers = ({ credentials }: Server): readonly ApiCredentials[] => credentials.keys.slice(0, platforms);

/** Gives each platform its part of receivers as endpoints. */
async function addWebhooks(service: Server, ports: readonly number[]): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const keys = sellers(service);
  for (const [place, port] of ports.entries()) {
    const key = keys[place % keys.length] as ApiCredentials;
    await post(
      service,
      agent,
      key,
      '/api/v1/webhooks',
      JSON.stringify({ url: `https://127.0.0.1:${port}/` }),
    );
  }
  agent.destroy();
}

/** Posts a signed body; what is answered, which must be 200. */
function post({ ports }: Server, agent: Agent, key: ApiCredentials, path: string, body: string) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>();
  const headers = {
    'Content-Type': 'application/json',
    ...signedHeaders(key, { method: 'POST', target: path, body }),
  };
  const sent = { host: '127.0.0.1', port: ports.public, agent, method: 'POST', path, headers };
  request(sent, (response) => {
    text(response).then((answer) => {
      if (response.statusCode === 200) resolve(JSON.parse(answer));
      else reject(new Error(`${path} is answered with ${response.statusCode}: ${answer}`));
    }, reject);
  })
    .on('error', reject)
    .end(body);
  return promise;
}

/** Measures how far behind webhooks arrive, of filings that come fast and of those that come slowly. */
async function measureLag(
  title: string,
  service: Server,
  receivers: Receivers,
  events: number,
  print: (text: string) => void,
): Promise<void> {
  const paces = [
    { words: 'in one go', perS: fastPerS, filings: events },
    { words: 'a few a second', perS: slowPerS, filings: Math.ceil(events / slowPart) },
  ];
  for (const { words, perS, filings } of paces) {
    const before = service.cpuTimes();
    const answered = await fileAt(service, perS, filings);
    const arrivals = await receivers.gather(filings * healthyOfEach);
    const { totalS } = cpuBetween(before, service.cpuTimes());
    const cpuUs = (totalS / filings / healthyOfEach) * 1e6;
    print(
      `  ${title}, ${filings} events ${words}: ${lagWords(answered, arrivals)}, CPU ${Math.round(cpuUs)} µs a delivery`,
    );
  }
}

/** Files so much a second; when each filing was answered, Unix milliseconds. */
async function fileAt(service: Server, perS: number, filings: number): Promise<ReadonlyMap<string, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const keys = sellers(service);
  const answered = new Map<string, number>();
  const startedMs = performance.now();
  const file = async (place: number) => {
    const body = JSON.stringify({ ...artwork, price: artwork.price + place });
    const { filingNo = '' } = await post(
      service,
      agent,
      keys[place % keys.length] as ApiCredentials,
      '/api/v1/filing',
      body,
    );
    answered.set(filingNo, performance.timeOrigin + performance.now());
  };
  let next = 0;
  const work = async () => {
    for (let place = next++; place < filings; place = next++) {
      const waitMs = startedMs + (place / perS) * 1_000 - performance.now();
      if (waitMs > 0) await delay(waitMs);
      await file(place);
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  agent.destroy();
  return answered;
}

/** How far behind its filing each webhook arrived, and how far behind the last filing the last. */
function lagWords(answered: ReadonlyMap<string, number>, arrivals: Arrivals): string {
  const all = Object.values(arrivals).flatMap((own) => Object.entries(own));
  const lagsMs = Float64Array.from(
    all,
    ([filingNo, atMs]) => atMs - (answered.get(filingNo) ?? Number.NaN),
  ).sort();
  const at = (share: number) => (lagsMs[Math.floor(share * (lagsMs.length - 1))] ?? Number.NaN).toFixed(0);
  const [lastAnswerMs, lastArrivalMs] = [[...answered.values()], all.map(([, atMs]) => atMs)].map((times) =>
    times.reduce((a, b) => Math.max(a, b), 0),
  ) as [number, number];
  const behindS = (lastArrivalMs - lastAnswerMs) / 1_000;
  return `${lagsMs.length} deliveries, lag p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, the last ${behindS.toFixed(1)} s behind the last filing`;
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
  const figures = new Map(servers.map((server): [Server, Figures[]] => [server, []]));
  const filed = { year: new Date().getUTCFullYear(), last: 1 };
  const told = toldOf(service, requests);
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    await load.prepare({
      workload: 'filing',
      requests,
      filed,
      credentials: servers.map((one) => one.credentials),
    });
    const first = round % servers.length;
    for (const server of [...servers.slice(first), ...servers.slice(0, first)]) {
      const before = server.cpuTimes();
      const sent = await load.send(server, 'public', connections);
      if (round > 0) figures.get(server)?.push(figuresOf(sent, cpuBetween(before, server.cpuTimes())));
      if (server === service) await receivers.gather(told * healthyOfEach);
    }
  }
  const [sender, ...compared] = Array.from(figures, ([{ name }, own]) => ({ name, figures: own }));
  if (sender === undefined) return;
  print(
    `  POST /api/v1/filing while webhooks are sent, ${told * (healthyOfEach + deadOfEach)} a round; connections: ${connections}, requests a round: ${requests}`,
  );
  for (const { name, figures: own } of [sender, ...compared]) print(serverLine(name, own));
  for (const other of compared) for (const line of ratioLines(sender, other, connections)) print(line);
  const doubt = doubtLine([sender, ...compared]);
  if (doubt !== undefined) print(doubt);
}

/** How many of so many filings, which platforms file by turns, are of platforms that have endpoints. */
function toldOf({ credentials: { keys } }: Server, filings: number): number {
  return Math.floor(filings / keys.length) * platforms + Math.min(platforms, filings % keys.length);
}
