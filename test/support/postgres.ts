import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, chownSync, constants, globSync, mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import pg from 'pg';

type Cleanup = Pick<TestContext, 'after'>;

/** How a cluster writes. */
export interface ClusterOptions {
  /** Whether a commit waits for the disk: only a crash of the machine shows the difference. Off, databases are created faster. */
  readonly fsync: boolean;
  /** Settings besides those of all clusters. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The program of PostgreSQL that makes the data folder, with its words; initdb if undefined. */
  readonly made?: (dataFolder: string) => readonly [program: string, ...words: string[]];
}

/** A PostgreSQL cluster. It ends with this process, however this process ends. */
export interface PostgresCluster {
  /** The folder of its Unix socket and of its data, which is in `data`. */
  readonly folder: string;
  /** Returns the URL of a database, whether it exists or not. */
  url(database: string): string;
  /** Stops the cluster at once, as a crash does: it recovers when it starts again. */
  kill(): Promise<void>;
  /** Starts a killed cluster on the same data. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Stops the cluster at once and removes its data. */
  remove(): Promise<void>;
}

/** What a new database contains, and where it is. */
export interface DatabaseOptions {
  /** Fills the database at this URL. Called once a cluster: each further database is a copy of the first. */
  readonly template?: (url: string) => Promise<void>;
  /** The cluster that all tests of the process share, if undefined. */
  readonly cluster?: PostgresCluster;
}

/** The user of the URLs, who may do everything. */
const superuser = 'postgres';

/** Users that run PostgreSQL for root, which it refuses. */
const unprivilegedUsers = ['postgres', 'nobody'];

/**
 * Runs the cluster until its standard input ends, also because the process that started it was killed. Then it removes the
 * data, unless it has read a line. Standard error ends when PostgreSQL has ended.
 */
const guard = `
folder=$1 binaries=$2 as=$3
shift 3
[ -d "$folder/data" ] || $as "$binaries/initdb" --no-sync --no-instructions --auth=trust --username=${superuser} \
  --encoding=UTF8 --locale=C.UTF-8 --pgdata="$folder/data" >/dev/null || { rm -rf "$folder"; exit 1; }
$as "$binaries/postgres" -D "$folder/data" -k "$folder" "$@" &
exec 2>/dev/null
keep=
read -r keep
kill -QUIT $!
wait
[ -n "$keep" ] || rm -rf "$folder"`;

/** Has a folder for each version. */
const debianFolder = '/usr/lib/postgresql/';

/** Of a standby it continues otherwise. */
const readyLine = 'database system is ready to accept';

/** The folder of PostgreSQL's programs: ARTSEAL_TEST_POSTGRES, or else Debian's newest. Undefined if there is none. */
export function postgresBinaries(): string | undefined {
  const chosen = process.env.ARTSEAL_TEST_POSTGRES;
  if (chosen !== undefined) return hasServer(chosen) ? chosen : undefined;
  const version = (folder: string) => Number.parseFloat(folder.slice(debianFolder.length));
  const folders = globSync(`${debianFolder}*/bin`).sort((a, b) => version(b) - version(a));
  return folders.find(hasServer);
}

/** For a test's `skip`: false if PostgreSQL is installed, else the reason. Throws instead if ARTSEAL_TEST_REQUIRE_ALL is set. */
export function skipUnlessPostgres(): string | false {
  if (postgresBinaries() !== undefined) return false;
  if (process.env.ARTSEAL_TEST_REQUIRE_ALL) throw new Error(notInstalled);
  return notInstalled;
}

const notInstalled =
  'not installed: PostgreSQL (apt-get install postgresql, or set ARTSEAL_TEST_POSTGRES to the folder of its programs)';

let shared: Promise<PostgresCluster> | undefined;

/** Returns the cluster that all tests of this process share. The first call starts it. */
export function postgresCluster(): Promise<PostgresCluster> {
  shared ??= openCluster({ fsync: true });
  return shared;
}

/** Clusters whose test has ended. */
const ended: PostgresCluster[] = [];

/**
 * Starts a cluster for one test, which may kill it. It is removed when the next such cluster starts, or this process ends: a
 * store that is closed after the test still writes to it.
 */
export async function startCluster(t: Cleanup, options: ClusterOptions): Promise<PostgresCluster> {
  for (const cluster of ended.splice(0)) await cluster.remove();
  const cluster = await openCluster(options);
  t.after(() => ended.push(cluster));
  return cluster;
}

/** Folders of killed clusters, which nobody else removes. */
const killed = new Set<string>();
process.once('exit', () => killed.forEach(removeFolder));

const removeFolder = (folder: string) => rmSync(folder, { recursive: true, force: true });

/** Starts a cluster in a new folder. Resolves when it accepts connections. */
export async function openCluster({ fsync, settings, made }: ClusterOptions): Promise<PostgresCluster> {
  const binaries = postgresBinaries();
  if (binaries === undefined) throw new Error(notInstalled);
  const folder = mkdtempSync(join(tmpdir(), 'artseal-pg-'));
  const host = encodeURIComponent(folder).replaceAll('%2F', '/');
  const all = {
    ...{ listen_addresses: '', shared_buffers: '16MB', lc_messages: 'C' },
    ...(!fsync && { fsync: 'off' }),
    ...settings,
  };
  const as = asUnprivilegedUser(folder);
  const words = [
    ...['-c', guard, 'postgres-guard', folder, binaries, as],
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  if (made !== undefined) {
    const [program, ...more] = made(join(folder, 'data'));
    execFileSync('sh', ['-c', `${as} "$@"`, 'sh', join(binaries, program), ...more], { cwd: folder });
  }
  let running = await startGuard(words, folder);
  return {
    folder,
    url: (database) => `postgres://${superuser}@/${database}?host=${host}`,
    kill: async () => {
      await stopGuard(running, 'keep\n');
      killed.add(folder);
    },
    start: async () => {
      running = await startGuard(words, folder);
      killed.delete(folder);
    },
    remove: async () => {
      await stopGuard(running);
      removeFolder(folder);
    },
  };
}

/** Gives the folder to a user who may run PostgreSQL. Returns the start of a command that runs as this user. */
export function asUnprivilegedUser(folder: string): string {
  if (process.getuid?.() !== 0) return '';
  const { stdout } = spawnSync('getent', ['passwd', ...unprivilegedUsers], { encoding: 'utf8' });
  const [, , uid, gid] = stdout.split('\n', 1).join('').split(':');
  if (uid === undefined || gid === undefined)
    throw new Error(`none of the users ${unprivilegedUsers.join(', ')} exists`);
  chownSync(folder, Number(uid), Number(gid));
  return `setpriv --reuid=${uid} --regid=${gid} --clear-groups`;
}

async function startGuard(words: readonly string[], folder: string): Promise<ChildProcess> {
  const child = spawn('sh', words, {
    cwd: folder,
    // Variables such as PGPORT would change its settings.
    env: { PATH: process.env.PATH },
    // In a process group of its own, which Ctrl+C does not reach.
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let output = '';
  const ready = Promise.withResolvers<void>();
  const read = (chunk: string) => {
    output += chunk;
    if (!output.includes(readyLine)) return;
    ready.resolve();
    child.stderr.off('data', read).resume();
  };
  child.stderr.setEncoding('utf8').on('data', read);
  child.stderr.on('end', () => ready.reject(new Error(`PostgreSQL ended: ${output}`)));
  child.on('error', ready.reject);
  child.stdin.on('error', () => {});
  await ready.promise;
  // So that this process ends while the cluster runs.
  for (const handle of [child, child.stdin, child.stderr] as unknown as readonly Socket[]) handle.unref();
  return child;
}

async function stopGuard(child: ChildProcess, lastWords = ''): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.ref();
  child.stdin?.end(lastWords);
  await exited;
}

/** Connects to a database until the end of the test. */
export async function connectTo(t: Cleanup, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  t.after(() => client.end());
  return client;
}

/** Runs statements on a connection of its own. Returns the rows of the last one. */
export async function runSql<Row extends pg.QueryResultRow>(
  url: string,
  ...statements: readonly string[]
): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: readonly Row[] = [];
    for (const statement of statements) ({ rows } = await client.query<Row>(statement));
    return rows;
  } finally {
    await client.end();
  }
}

/** Databases by the cluster. */
interface Databases {
  count: number;
  /** Names of databases whose test has ended. */
  readonly unused: Set<string>;
  readonly templates: Map<(url: string) => Promise<void>, Promise<string>>;
}

const databasesOf = new WeakMap<PostgresCluster, Databases>();

/**
 * Creates a database for a test. Returns its URL. A later call for another test drops it, once nobody is connected: a store
 * that is closed after the test still is.
 */
export async function createDatabase(t: Cleanup, options: DatabaseOptions = {}): Promise<string> {
  const cluster = options.cluster ?? (await postgresCluster());
  const databases = databasesOf.get(cluster) ?? { count: 0, unused: new Set(), templates: new Map() };
  databasesOf.set(cluster, databases);
  const template = options.template && (await templateOf(cluster, databases, options.template));
  const name = await createFrom(cluster, databases, template);
  t.after(() => databases.unused.add(name));
  return cluster.url(name);
}

function templateOf(
  cluster: PostgresCluster,
  databases: Databases,
  fill: (url: string) => Promise<void>,
): Promise<string> {
  let template = databases.templates.get(fill);
  if (template === undefined) {
    template = createFrom(cluster, databases).then(async (name) => {
      await fill(cluster.url(name));
      return name;
    });
    databases.templates.set(fill, template);
  }
  return template;
}

async function createFrom(
  cluster: PostgresCluster,
  databases: Databases,
  template = 'template1',
): Promise<string> {
  databases.count += 1;
  const name = `test_${databases.count}`;
  const client = new pg.Client({ connectionString: cluster.url('postgres') });
  await client.connect();
  try {
    await dropUnused(client, databases.unused);
    // Faster than WAL_LOG without fsync, and as fast with it.
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  } finally {
    await client.end();
  }
  return name;
}

/** Drops the unused databases to which nobody is connected. */
async function dropUnused(client: pg.Client, unused: Set<string>): Promise<void> {
  const { rows } = await client.query<{ readonly datname: string }>(
    `SELECT datname FROM pg_database WHERE datname = ANY($1)
       AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pg_stat_activity.datname = pg_database.datname)`,
    [[...unused]],
  );
  for (const { datname } of rows) {
    if (unused.delete(datname)) await client.query(`DROP DATABASE ${datname} WITH (FORCE)`);
  }
}

function hasServer(folder: string): boolean {
  try {
    accessSync(join(folder, 'postgres'), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
