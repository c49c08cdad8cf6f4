import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import pg from 'pg';
import { newKey } from '../test/support/master-keys.ts';
import { openCluster } from '../test/support/postgres.ts';
import { adopt, endChild } from './children.ts';
import { type Credentials, issueCredentials } from './credentials.ts';
import { cpuTimes, residentMb, sumOf } from './process-usage.ts';
import { startStandby } from './standby.ts';

/** Signed calls go to the public listener, those of internal systems to the internal one. */
export type ListenerName = 'public' | 'internal';

/** A server that is measured. */
export type Server = Awaited<ReturnType<typeof startProcess>> & {
  readonly credentials: Credentials;
  /** A second instance, to which every other connection is opened. */
  readonly second?: Server;
};

/** How long a server may take to start before it counts as hung, in milliseconds. */
const startMs = 30_000;

/** The folder of the project that this bench belongs to. */
export const ownProject: string = join(import.meta.dirname, '..');

/**
 * Starts the service of a checkout as its `npm start` does, on a new data folder, and issues credentials through its
 * internal API. No other call is made, so the checkout may be older. With `credentials` its database has them already;
 * `settings` are further ones of its own.
 */
export async function startService(
  name: string,
  projectDir: string,
  dataDir: string,
  {
    credentials,
    settings = {},
  }: { credentials?: Credentials; settings?: Readonly<Record<string, string>> } = {},
): Promise<Server> {
  mkdirSync(dataDir, { recursive: true });
  const inherited = Object.entries(process.env).filter(([variable]) => !variable.startsWith('ARTSEAL_'));
  const started = await startProcess(name, {
    command: [process.execPath, ...startWords(projectDir)],
    cwd: projectDir,
    dataDir,
    env: {
      ...Object.fromEntries(inherited),
      ARTSEAL_DATA_DIR: dataDir,
      ARTSEAL_PUBLIC_ADDR: '127.0.0.1:0',
      ARTSEAL_INTERNAL_ADDR: '127.0.0.1:0',
      ARTSEAL_METRICS_ADDR: '127.0.0.1:0',
      ARTSEAL_LOG_LEVEL: 'info',
      ...settings,
    },
  });
  const issued = credentials ?? (await issueCredentials(dataDir, started.ports.internal));
  return { ...started, credentials: issued };
}

/** How a service is started on PostgreSQL. */
interface OnPostgres {
  readonly projectDir?: string;
  /** Whether each commit waits for a standby. */
  readonly standby?: boolean;
  /** Whether there are two instances. */
  readonly two?: boolean;
}

/** Starts a service on a new PostgreSQL, which ends with this process. */
export async function startOnPostgres(
  name: string,
  dataDir: string,
  { projectDir = ownProject, standby = false, two = false }: OnPostgres = {},
) {
  const cluster = await openCluster({
    fsync: true,
    settings: standby ? { synchronous_standby_names: '*' } : {},
  });
  if (standby) await startStandby(cluster, `${dataDir}-standby`);
  const client = new pg.Client({ connectionString: cluster.url('postgres') });
  await client.connect();
  await client.query('CREATE DATABASE artseal');
  await client.end();
  const databaseUrl = cluster.url('artseal');
  const settings = { ARTSEAL_DATABASE_URL: databaseUrl, ...(two && sharedSettings()) };
  const first: Server = await startService(name, projectDir, dataDir, { settings });
  if (!two) return { ...first, databaseUrl };
  const { credentials } = first;
  const second = await startService(name, projectDir, `${dataDir}-second`, { credentials, settings });
  return { ...first, second, cpuTimes: () => sumOf(first.cpuTimes(), second.cpuTimes()), databaseUrl };
}

/** What instances need in common. The provider is never called. */
const sharedSettings = () => ({
  ARTSEAL_MASTER_KEY: newKey('k1'),
  ARTSEAL_PAYMENT_PROVIDER: 'stripe',
  ARTSEAL_STRIPE_API_KEY: 'sk_test_bench',
  ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_bench',
  ARTSEAL_STRIPE_URL: 'http://127.0.0.1:9',
});

/** The arguments of `node` in `npm start` of a checkout. */
function startWords(projectDir: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8'));
  return scripts.start.split(' ').slice(1);
}

interface ProcessStart {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly dataDir: string;
}

/** Starts a process. Returns the server that it is. */
export async function startProcess(name: string, start: ProcessStart) {
  const { command, cwd, env, dataDir } = start;
  const logFile = join(dataDir, 'stderr.log');
  const [program = '', ...words] = command;
  const spawnedMs = performance.now();
  const child = adopt(spawn(program, words, { cwd, env, stdio: ['ignore', 'pipe', openSync(logFile, 'a')] }));
  // Lines of calls that went well (level 30, `info`) say nothing of what went wrong.
  const lastWords = () => {
    const lines = readFileSync(logFile, 'utf8').split('\n');
    return lines
      .filter((text) => !text.startsWith('{"level":30'))
      .slice(-20)
      .join('\n');
  };
  const ready = await readReadyLine(child).catch((error) => {
    throw new Error(`The server ${name} did not start (${error.message}): ${lastWords()}`);
  });
  const readyMs = performance.now() - spawnedMs;
  const pid = child.pid ?? 0;
  return {
    name,
    /** The ports of its listeners; undefined for one that it does not have. */
    ports: { public: portIn(ready, 'public'), internal: portIn(ready, 'internal') },
    /** The end of what it wrote to standard error. */
    lastWords,
    /** Processor time so far. */
    cpuTimes: () => cpuTimes(pid),
    residentMb: () => residentMb(pid),
    /** Ends it and starts it again on its data. Resolves to `readyMs` of the new process. */
    restart: async (): Promise<number> => {
      await endChild(child);
      return (await startProcess(name, start)).readyMs;
    },
    /** Milliseconds from the start of the process until it was ready. */
    readyMs,
  };
}

/** The line that a server prints when it is ready. */
async function readReadyLine(child: ChildProcess): Promise<string> {
  const signal = AbortSignal.timeout(startMs);
  const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error('it ended')));
  // It may end long after it was ready.
  ended.catch(() => {});
  // Rejects for a program that is not there.
  await Promise.race([ended, once(child, 'spawn', { signal })]);
  const stdout = child.stdout as Readable;
  let printed = '';
  for (;;) {
    const [chunk] = await Promise.race([ended, once(stdout, 'data', { signal })]);
    printed += chunk;
    const line = /^.* ready .*(?=\n)/m.exec(printed)?.[0];
    if (line !== undefined) return line;
  }
}

function portIn(readyLine: string, listener: ListenerName): number | undefined {
  const port = new RegExp(`\\b${listener}=http://127\\.0\\.0\\.1:(\\d+)`).exec(readyLine)?.[1];
  return port === undefined ? undefined : Number(port);
}
