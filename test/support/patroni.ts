import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { projectFolder } from './artseal-command.ts';
import { type Authority, type Certificate, makeAuthority } from './certificates.ts';
import { eventually } from './eventually.ts';
import { freeAddress } from './free-address.ts';
import { skipUnlessInstalled } from './installed.ts';
import { asUnprivilegedUser, skipUnlessPostgres } from './postgres.ts';
import { temporaryFolder } from './temporary-folder.ts';

type Test = Pick<TestContext, 'after'>;

const deployed = (file: string) =>
  readFileSync(join(projectFolder, 'deploy', 'postgres', 'ha', file), 'utf8');
const { bin_dir: binaries, data_dir: dataFolder } = parse(deployed('patroni.yml')).postgresql;
const tlsFolder = '/etc/artseal-db';

/** The longest wait for a step of the cluster, in milliseconds. */
const stepMs = 120_000;
/** The longest text that a query may return. */
const rowsBytesMax = 2 ** 28;

const databaseMachines = ['db1', 'db2'] as const;
/** A machine with PostgreSQL. */
export type DatabaseMachine = (typeof databaseMachines)[number];

const machineNames = [...databaseMachines, 'quorum'] as const;
type MachineName = (typeof machineNames)[number];
/** The ports of etcd, Patroni and PostgreSQL in the configuration. */
const ports = [2379, 2380, 8008, 5432] as const;

/** What the test has in place of a machine. */
interface Machine {
  /** Contains its configuration, certificate, data and log. */
  readonly folder: string;
  /** The start of a shell command that runs as a user who may run PostgreSQL. */
  readonly as: string;
  /** Returns its address in place of a port. */
  readonly address: (port: (typeof ports)[number]) => string;
  /** Returns a file of deploy/postgres/ha with the addresses and folders of this machine. */
  readonly configuration: (file: string) => string;
  readonly certificate: Certificate;
}

/** A member of the cluster as Patroni describes it. */
interface Member {
  readonly name: DatabaseMachine;
  readonly role: string;
  readonly state: string;
}

/** As `startPatroni` makes it. */
export type PatroniCluster = Awaited<ReturnType<typeof startPatroni>>;

/** For a test's `skip`: false if Debian's Patroni, etcd and PostgreSQL are installed, else the reason. */
export function skipUnlessPatroni(): string | false {
  const { ARTSEAL_TEST_POSTGRES: chosen } = process.env;
  if (chosen !== undefined && chosen !== binaries) return `deploy/postgres/ha uses ${binaries}`;
  return skipUnlessPostgres() || skipUnlessInstalled('patroni', 'etcd', 'setpriv');
}

/** Returns machines by their name, each with a certificate of the authority and free addresses. */
async function makeMachines(t: Test, authority: Authority): Promise<Record<MachineName, Machine>> {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const addresses: [place: string, address: string][] = [];
  for (const name of machineNames)
    for (const port of ports) addresses.push([`${name}:${port}`, await freeAddress()]);
  const machine = (name: MachineName): Machine => {
    const own = join(folder, name);
    mkdirSync(own, { mode: 0o700 });
    const address = (port: number) => new Map(addresses).get(`${name}:${port}`) ?? '';
    const here = [
      ...['*', '0.0.0.0', 'this-machine'].flatMap((all) =>
        ports.map((port) => [`${all}:${port}`, address(port)] as const),
      ),
      ...addresses,
      ...([
        ['this-machine', name],
        [tlsFolder, own],
        [dataFolder, join(own, 'data')],
      ] as const),
    ];
    return {
      ...{ folder: own, address, as: asUnprivilegedUser(own) },
      configuration: (file) =>
        here.reduce((text, [shipped, here]) => text.replaceAll(shipped, here), deployed(file)),
      certificate: authority.issue(name),
    };
  };
  return { db1: machine('db1'), db2: machine('db2'), quorum: machine('quorum') };
}

/** Writes the files of a machine, which belong to its user. */
function writeFiles({ folder, as, configuration, certificate }: Machine, authority: Authority): void {
  copyFileSync(authority.certificateFile, join(folder, 'authority.pem'));
  copyFileSync(certificate.certificateFile, join(folder, 'machine.pem'));
  copyFileSync(certificate.keyFile, join(folder, 'machine.key'));
  const user = execFileSync('sh', ['-c', `${as} id -un`], { encoding: 'utf8' }).trim();
  const patroni = parse(configuration('patroni.yml'), { merge: true });
  patroni.postgresql.parameters = { unix_socket_directories: folder };
  patroni.postgresql.authentication.superuser.username = user;
  patroni.bootstrap.dcs.postgresql.pg_hba[0] = `local all ${user} peer`;
  patroni.watchdog.mode = 'off';
  writeFileSync(join(folder, 'patroni.yml'), stringify(patroni));
  execFileSync('chown', ['--recursive', `--reference=${folder}`, folder]);
}

/** Starts a member of etcd, which ends with this process. */
function startEtcd(t: Test, { folder, as, configuration }: Machine): void {
  const settings = configuration('etcd').matchAll(/^(\w+)=(.*)$/gm);
  const env = Object.fromEntries(Array.from(settings, ([, name, value]) => [name, value]));
  const command = `exec ${as || 'setpriv'} --pdeathsig=KILL etcd >"$0/etcd.log" 2>&1`;
  const etcd = spawn('sh', ['-c', command, folder], {
    env: { PATH: process.env.PATH, ...env, ETCD_DATA_DIR: join(folder, 'etcd') },
    stdio: 'ignore',
  });
  t.after(() => etcd.kill('SIGKILL'));
}

/**
 * Runs Patroni until its standard input ends. Then it kills Patroni and its PostgreSQL at once, as a power failure does: all
 * processes of PostgreSQL are in the data folder.
 */
const guard = `
folder=$1 as=$2
$as patroni "$folder/patroni.yml" >>"$folder/log" 2>&1 &
read -r _
kill -KILL $!
while
  running=$(find /proc -mindepth 2 -maxdepth 2 -name cwd -lname "$folder/data" 2>/dev/null | cut -d/ -f3)
  [ -n "$running" ]
do kill -KILL $running 2>/dev/null; done`;

/** Runs the Patroni of a machine again and again. */
function createNode(t: Test, { folder, as }: Machine) {
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null) return;
    child.stdin?.end();
    await once(child, 'exit');
  };
  t.after(kill);
  return {
    start: (): void => {
      child = spawn('sh', ['-c', guard, 'patroni-guard', folder, as], {
        cwd: folder,
        // In a process group of its own, which Ctrl+C does not reach.
        detached: true,
        // Variables such as PGPORT and PATRONI_NAME would change settings.
        env: { PATH: process.env.PATH, HOME: folder },
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      child.stdin?.on('error', () => {});
    },
    kill,
  };
}

/**
 * Starts three members of etcd and two of Patroni from deploy/postgres/ha on this machine: only addresses, folders and the user
 * differ, and there is no watchdog. Resolves when the standby is synchronous. They end with this process, however it ends.
 */
export async function startPatroni(t: Test) {
  const authority = makeAuthority(t);
  const machines = await makeMachines(t, authority);
  for (const machine of Object.values(machines)) {
    writeFiles(machine, authority);
    startEtcd(t, machine);
  }
  const nodes = { db1: createNode(t, machines.db1), db2: createNode(t, machines.db2) };
  for (const { start } of Object.values(nodes)) start();
  /** Runs a program as the user of a machine. Returns what it prints. */
  const runOn = async (name: DatabaseMachine, program: string, words: readonly string[]) => {
    const { folder, as } = machines[name];
    const options = { cwd: folder, maxBuffer: rowsBytesMax };
    const { stdout } = await promisify(execFile)('sh', ['-c', `${as} "$0" "$@"`, program, ...words], options);
    return stdout;
  };
  const cluster = {
    /** Kills Patroni and PostgreSQL of a machine at once. */
    kill: (name: DatabaseMachine) => nodes[name].kill(),
    /** Starts a machine that was killed. */
    start: (name: DatabaseMachine) => nodes[name].start(),
    /** Waits until one machine is the primary and the other follows it in this role. */
    whole: (role: 'sync_standby' | 'replica' = 'sync_standby') =>
      eventually(`a primary and a ${role}`, stepMs, async () => {
        const lists = await Promise.all(databaseMachines.map((name) => readMembers(machines[name])));
        const members = lists.find((list) => list.length > 0) ?? [];
        const is = (role: string) => members.find((member) => member.role === role)?.name;
        const [primary, standby] = [is('leader'), is(role)];
        return primary && standby && { primary, standby };
      }),
    /** Runs patronictl. */
    control: (...words: readonly string[]) =>
      runOn('db1', 'patronictl', ['-c', join(machines.db1.folder, 'patroni.yml'), ...words]),
    /** Removes the data folder of a machine that was killed. */
    erase: (name: DatabaseMachine) =>
      rmSync(join(machines[name].folder, 'data'), { recursive: true, force: true }),
    /** Removes what etcd has of the cluster after its leader was killed. */
    forget: (leader: DatabaseMachine) => {
      const answers = ['artseal', 'Yes I am aware', leader].map((answer) => `${answer}\\n`).join('');
      return runOn('db1', 'sh', ['-c', `printf '${answers}' | patronictl -c patroni.yml remove artseal`]);
    },
    /** Runs SQL on a machine as superuser. Returns the rows as lines. */
    sql: async (name: DatabaseMachine, database: string, sql: string): Promise<string[]> => {
      const [, port] = machines[name].address(5432).split(':');
      const place = [`--host=${machines[name].folder}`, `--port=${port}`, `--dbname=${database}`];
      const words = ['-qAtX', '--set=ON_ERROR_STOP=1', ...place, `--command=${sql}`];
      return (await runOn(name, join(binaries, 'psql'), words)).split('\n').slice(0, -1);
    },
    /** Returns the log of Patroni and PostgreSQL of a machine. */
    log: (name: DatabaseMachine): string => readFileSync(join(machines[name].folder, 'log'), 'utf8'),
    /** The setting of Artseal that names both machines, and its authority. */
    settings: {
      ARTSEAL_DATABASE_URL: `postgres://artseal@${databaseMachines.map((name) => machines[name].address(5432))}/artseal?sslmode=verify-full`,
      ARTSEAL_DATABASE_CA_FILE: authority.certificateFile,
    },
  };
  await cluster.whole();
  return cluster;
}

/** Asks the Patroni of a machine for the running members. None if it does not answer. */
async function readMembers({ address, certificate }: Machine): Promise<readonly Member[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Member[]>();
  const none = () => resolve([]);
  const { certificate: cert, key } = certificate;
  const options = { cert, key, rejectUnauthorized: false, agent: false, timeout: 5_000 };
  const asked = request(`https://${address(8008)}/cluster`, options, async (response) => {
    const { members } = (await json(response)) as { readonly members: readonly Member[] };
    resolve(members.filter(({ state }) => state === 'running' || state === 'streaming'));
  });
  asked.on('error', none).on('timeout', none).end();
  return promise;
}
