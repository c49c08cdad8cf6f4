import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { runtimeFlags } from '../src/runtime.ts';
import type { Filed, Order, Outcome, Sent, Workload } from './orders.ts';

/** A server that is measured. */
export interface Server {
  readonly name: 'service' | 'floor';
  readonly port: number;
  /** CPU time so far, in seconds; NaN where the system does not tell. */
  cpuS(): number;
  /** Resident memory now and at its highest, in MB; NaN where the system does not tell. */
  residentMb(): { now: number; peak: number };
  /** The end of what it wrote to standard error. */
  lastWords(): string;
}

/** The load generator. */
export interface Load {
  /** Signs requests in advance, which are then the ones to send. */
  sign(workload: Workload, requests: number, filed: Filed): Promise<void>;
  /** Sends the signed requests; they are good for one sending to each server. */
  send(server: Server): Promise<Sent>;
}

/** How long a child may take to start, to carry out an order and to end, before it counts as hung; in ms. */
const timeouts = { startMs: 30_000, orderMs: 240_000, endMs: 15_000 } as const;

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const ticksPerS = 100;

const projectDir = join(import.meta.dirname, '..');
/** The words behind `node` with which `npm start` starts the service. */
const startWords = startScript().split(' ').slice(1);
const children = new Set<ChildProcess>();

function adopt<C extends ChildProcess>(child: C): C {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Asks all children to end and waits until they have. */
export async function endChildren(): Promise<void> {
  const ended = Array.from(children, async (child) => {
    const exit = once(child, 'exit');
    const force = setTimeout(() => child.kill('SIGKILL'), timeouts.endMs);
    child.kill('SIGTERM');
    await exit;
    clearTimeout(force);
  });
  await Promise.all(ended);
}

/** Kills all children at once, for an end that cannot wait. */
export function killChildren(): void {
  for (const child of children) child.kill('SIGKILL');
}

/** Starts the service as an operator does. */
export function startService(dataDir: string): Promise<Server> {
  const environment = Object.entries(process.env).filter(([name]) => !name.startsWith('ARTSEAL_'));
  return startServer('service', startWords, dataDir, {
    ...Object.fromEntries(environment),
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_PUBLIC_ADDR: '127.0.0.1:0',
    ARTSEAL_INTERNAL_ADDR: '127.0.0.1:0',
    ARTSEAL_LOG_LEVEL: 'info',
  });
}

/** Starts the floor, on the same runtime with the flags that the service gives itself. */
export function startFloor(dataDir: string): Promise<Server> {
  return startServer('floor', [...runtimeFlags, 'bench/floor.ts', dataDir], dataDir, process.env);
}

function startScript(): string {
  return JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')).scripts.start;
}

async function startServer(
  name: Server['name'],
  words: readonly string[],
  dataDir: string,
  env: NodeJS.ProcessEnv,
): Promise<Server> {
  const logFile = join(dataDir, 'stderr.log');
  const stdio = ['ignore', 'pipe', openSync(logFile, 'a')] as const;
  const child = adopt(spawn(process.execPath, words, { cwd: projectDir, env, stdio: [...stdio] }));
  // Lines of calls that went well (pino's level 30) say nothing of what went wrong.
  const lastWords = () => {
    const lines = readFileSync(logFile, 'utf8').split('\n');
    return lines
      .filter((text) => !text.startsWith('{"level":30'))
      .slice(-20)
      .join('\n');
  };
  const port = await readPort(child.stdout as Readable).catch(() => {
    throw new Error(`The ${name} did not start: ${lastWords()}`);
  });
  const proc = (file: string) => readProc(child.pid ?? 0, file);
  return {
    name,
    port,
    lastWords,
    cpuS: () => {
      // The second field is a name that may hold spaces; utime and stime are the 12th and 13th after it.
      const fields = proc('stat')
        .replace(/^.*\) /s, '')
        .split(' ');
      return (Number(fields[11]) + Number(fields[12])) / ticksPerS;
    },
    residentMb: () => {
      const status = proc('status');
      const mb = (field: string) =>
        Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
      return { now: mb('VmRSS'), peak: mb('VmHWM') };
    },
  };
}

/** The port in the line that a server prints when it is ready. */
async function readPort(stdout: Readable): Promise<number> {
  const signal = AbortSignal.timeout(timeouts.startMs);
  let printed = '';
  for (;;) {
    const [chunk] = await Promise.race([once(stdout, 'data', { signal }), once(stdout, 'close', { signal })]);
    if (chunk === undefined) throw new Error('The server ended.');
    printed += chunk;
    const port = /ready public=http:\S+?:(\d+)\s/.exec(printed)?.[1];
    if (port !== undefined) return Number(port);
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** Starts the load generator with the keys of a data folder. */
export function startLoad(dataDir: string): Load {
  const child = adopt(fork(join(import.meta.dirname, 'load.ts'), [dataDir]));
  return {
    sign: async (workload, requests, filed) => {
      await carryOut(child, { kind: 'sign', workload, requests, filed });
    },
    send: async ({ name, port, lastWords }) => {
      const { sent } = await carryOut(child, { kind: 'send', port }).catch((error) => {
        throw new Error(`${error.message} (sending to the ${name})\n${lastWords()}`);
      });
      if (sent === undefined) throw new Error('The load generator sent nothing.');
      if (sent.refused > 0) {
        const { refused, requests, firstRefusal } = sent;
        throw new Error(
          `The ${name} did not answer 200 to ${refused} of ${requests} requests:\n${firstRefusal}`,
        );
      }
      return sent;
    },
  };
}

async function carryOut(child: ChildProcess, order: Order): Promise<{ readonly sent?: Sent }> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const ended = () => reject(new Error('The load generator ended.'));
  const hung = setTimeout(() => reject(new Error('The load does not get done.')), timeouts.orderMs);
  child.once('message', resolve);
  child.once('exit', ended);
  child.send(order);
  try {
    const outcome = await promise;
    if ('error' in outcome) throw new Error(outcome.error);
    return outcome;
  } finally {
    clearTimeout(hung);
    child.off('message', resolve);
    child.off('exit', ended);
  }
}
