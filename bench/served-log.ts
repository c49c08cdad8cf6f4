import { execFile } from 'node:child_process';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { tilePath } from '../src/evidence/log/tiles.ts';
import { runtimeFlags } from '../src/packaging/runtime.ts';
import { issueInto } from '../test/support/issued.ts';
import { startLoad } from './generator.ts';
import { type LogPlan, measureLog } from './log.ts';
import { median, rangeOf } from './measurements.ts';
import type { PlannedSending } from './plan.ts';
import { ownProject, type Server, startService } from './servers.ts';

/** Connections over which tiles are read meanwhile, each as fast as it is answered. */
const readers = 8;
const tileWidth = 256;
/** Platforms enough that none ever comes near its rate. */
const platformsMax = 256;

/** What is required: milliseconds of a start, and seconds of an audit of a million leaves. */
const readyMsMax = 1_000;
const auditSMax = 15;

/** Measures the evidence log in its store, and then the service with it: its start, an audit of it, filing while it is read. */
export async function measureServedLog(
  { sending, ...plan }: LogPlan & { readonly sending: PlannedSending },
  dir: string,
  print: (text: string) => void,
): Promise<void> {
  const dataDir = join(dir, 'log');
  print(`\nEvidence log of ${plan.leaves} leaves; ${plan.rounds} rounds`);
  const { platforms, token } = await issueInto(dataDir, platformsMax);
  const smallDir = join(dir, 'log-small');
  await issueInto(smallDir, platformsMax);
  for await (const line of measureLog(plan, dataDir, smallDir)) print(line);
  const service = await startService('service', ownProject, dataDir, {
    credentials: { keys: platforms, token },
  });
  const url = `http://127.0.0.1:${service.ports.public}`;
  print(`  audit: ${(await auditS(url)).toFixed(1)} s (required: below ${auditSMax} s)`);
  print(await filingLine(service, url, sending, plan.rounds));
  // The first start verifies leaves that another process appended, and may have no compiled modules.
  const [firstMs, nextMs] = [service.readyMs, await service.restart()].map(Math.round);
  print(
    `  start: ready after ${nextMs} ms (required: below ${readyMsMax} ms), the first after ${firstMs} ms`,
  );
}

/** The seconds that the audit of all that is published takes. */
async function auditS(url: string): Promise<number> {
  const [vkey = ''] = (await (await fetch(`${url}/log/vkey`)).text()).split('\n');
  const main = join(ownProject, 'src', 'main.ts');
  const before = performance.now();
  const words = ['log', 'audit', `${url}/log`, '--key', vkey];
  await promisify(execFile)(process.execPath, [...runtimeFlags, main, ...words]);
  return (performance.now() - before) / 1_000;
}

/** How much slower filing is while tiles are read: the ratios of rounds with readers and without. */
async function filingLine(
  service: Server,
  url: string,
  { requests: filings, connections }: PlannedSending,
  rounds: number,
): Promise<string> {
  const load = startLoad();
  const filed = { year: new Date().getUTCFullYear(), last: 1 };
  async function file(): Promise<number> {
    const { credentials } = service;
    await load.prepare({ workload: 'filing', requests: filings, filed, credentials: [credentials] });
    const { requests, seconds } = await load.send(service, 'public', connections);
    return requests / seconds;
  }
  const ratios: number[] = [];
  let tiles = 0;
  await file();
  for (let round = 0; round < rounds; round += 1) {
    const alone = await file();
    const reading = await readTiles(url);
    const beside = await file();
    tiles += await reading.stop();
    ratios.push(beside / alone);
  }
  const read = `${Math.round(tiles / rounds)} full tiles a round over ${readers} connections`;
  return `  filing while tiles are read ÷ filing   ${median(ratios).toFixed(2)} ${rangeOf(ratios)}, ${read}`;
}

/** Reads full tiles of level 0 at random, each connection as fast as it is answered; how many, once it is stopped. */
async function readTiles(url: string): Promise<{ stop(): Promise<number> }> {
  const agent = new Agent({ keepAlive: true, maxSockets: readers });
  const [, sizeText = ''] = (await (await fetch(`${url}/log/checkpoint`)).text()).split('\n');
  const full = Math.floor(Number(sizeText) / tileWidth);
  let isStopped = false;
  let tiles = 0;
  const work = async () => {
    while (!isStopped) {
      const tile = { level: 0, place: Math.floor(Math.random() * full), width: tileWidth };
      const status = await statusOf(`${url}/log/tile/${tilePath(tile)}`, agent);
      // A busy service answers 503, and is asked again.
      if (status === 200) tiles += 1;
      else if (status !== 503) throw new Error(`A tile is answered with ${status}.`);
    }
  };
  const all = Promise.all(Array.from({ length: full === 0 ? 0 : readers }, work));
  return {
    stop: async () => {
      isStopped = true;
      await all;
      agent.destroy();
      return tiles;
    },
  };
}

function statusOf(url: string, agent: Agent): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  get(url, { agent }, (response) => {
    response.resume();
    response.on('end', () => resolve(response.statusCode));
  }).on('error', reject);
  return promise;
}
