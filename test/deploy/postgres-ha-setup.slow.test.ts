import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { projectFolder } from '../support/artseal-command.ts';
import { documentText } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runShell, serveWatched } from '../support/watched-command.ts';
import { bootMachine, type Machine, skipUnlessBootable } from './machine.ts';

const skip = skipUnlessBootable() || skipUnlessInstalled('etcd', 'etcdctl', 'patroni');
/** The longest wait for a step, in milliseconds. */
const stepMs = 120_000;
const names = ['db1', 'db2', 'quorum'] as const;
const addressOf = (nth: number): string => `10.77.0.${nth + 1}`;

const page = documentText('docs/operate/postgres-ha.md', 'Set up');
/** The command blocks of "Set up", in their order. */
const [makeAuthority = '', startEtcd = '', checkEtcd = '', startPatroni = '', list = ''] = Array.from(
  page.matchAll(/^ *```sh\n(.*?)^ *```$/gms),
  ([, text = '']) => text.replaceAll(/^ {3}/gm, ''),
);

const [, retries = ''] = /net\.ipv4\.tcp_retries2 = (\d+)/.exec(page) ?? [];

/** Runs commands that succeed, and returns what they print. */
async function succeed({ run }: Machine, script: string): Promise<string> {
  const { code, stdout, stderr } = await run(script);
  assert.equal(code, 0, `${script}\n${stdout}${stderr}`);
  return stdout;
}

/** Connects the machines by a bridge in the first one. */
async function connectMachines(t: TestContext, machines: readonly Machine[]): Promise<void> {
  const [first, ...others] = machines.map(({ firstProcess }) => firstProcess);
  const script = [
    'set -eu',
    `give() { nsenter --target "$1" --net ip "$2" add "$3" dev "$4"; nsenter --target "$1" --net ip link set "$4" up; }`,
    `nsenter --target ${first} --net ip link add bridge type bridge`,
    `give ${first} address ${addressOf(0)}/24 bridge`,
    ...others.flatMap((process, nth) => [
      `nsenter --target ${first} --net ip link add port${nth} type veth peer name eth0 netns ${process}`,
      `nsenter --target ${first} --net ip link set port${nth} master bridge up`,
      `give ${process} address ${addressOf(nth + 1)}/24 eth0`,
    ]),
  ].join('\n');
  const { code, stderr } = await runShell(t, script);
  assert.equal(code, 0, stderr);
}

/** Boots the three machines, and runs the documented steps on them. Returns the primary, and the one without a database. */
async function setUp(t: TestContext) {
  const folder = temporaryFolder(t);
  cpSync(join(projectFolder, 'deploy', 'postgres', 'ha'), folder, { recursive: true });
  const made = await runShell(t, `cd ${folder}\n${makeAuthority}`);
  assert.equal(made.code, 0, made.stderr);
  const machines = await Promise.all(names.map(() => bootMachine(t, folder)));
  await connectMachines(t, machines);
  const hosts = join(folder, 'hosts');
  writeFileSync(hosts, names.map((name, nth) => `${addressOf(nth)} ${name}\n`).join(''));
  for (const [nth, machine] of machines.entries()) {
    // These machines have no devices, and no udev.
    await succeed(machine, 'cp -a /media /root/ha; mkdir -p /etc/udev/rules.d');
    await succeed(machine, `hostname ${names[nth]}; cat /root/ha/hosts >>/etc/hosts`);
  }
  const [db1 = assert.fail(), db2 = assert.fail(), quorum = assert.fail()] = machines;
  for (const machine of machines) await succeed(machine, `cd /root/ha\n${startEtcd}`);
  await eventually('etcd is healthy', stepMs, async () => {
    const { stderr, stdout } = await db1.run(checkEtcd);
    return `${stdout}${stderr}`.match(/ is healthy/g)?.length === names.length;
  });
  const withoutWatchdog = startPatroni
    .replace(/^modprobe softdog$/m, '')
    .replace('patroni.yml >', `patroni.yml | sed "s/mode: required/mode: 'off'/" >`);
  for (const machine of [db1, db2]) await succeed(machine, `cd /root/ha\n${withoutWatchdog}`);
  const leader = await eventually('the standby is synchronous', stepMs, async () => {
    const { stdout } = await db1.run(list);
    return stdout.includes('Sync Standby') && /(db[12]) .* Leader /.exec(stdout)?.[1];
  });
  return { folder, hosts, primary: leader === 'db1' ? db1 : db2, quorum };
}

test('after the documented steps, a server connects again when the primary vanishes from the network', {
  skip,
  timeout: 5 * stepMs,
}, async (t) => {
  const { folder, hosts, primary, quorum } = await setUp(t);
  const password = randomBytes(16).toString('hex');
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  await succeed(
    primary,
    `cd /
    runuser -u postgres -- psql -c "CREATE ROLE artseal LOGIN PASSWORD '${password}'" \
      -c "CREATE DATABASE artseal OWNER artseal ENCODING 'UTF8' TEMPLATE template0"`,
  );
  const env = {
    ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data'),
    ARTSEAL_DATABASE_URL: 'postgres://artseal@db1,db2/artseal',
    ARTSEAL_DATABASE_CA_FILE: join(folder, 'authority.pem'),
    ARTSEAL_DATABASE_PASSWORD_FILE: passwordFile,
  };
  const onQuorum = `mount --bind ${hosts} /etc/hosts; echo ${retries} >/proc/sys/net/ipv4/tcp_retries2; exec "$@"`;
  const network = ['nsenter', '--target', quorum.firstProcess, '--net'];
  const service = await serveWatched(t, env, [...network, 'unshare', '--mount', 'sh', '-c', onQuorum, 'sh']);
  const fromMs = performance.now();
  // The link of the first machine is the bridge of all.
  await succeed(primary, 'ip link set eth0 down 2>/dev/null || ip address flush dev bridge');
  await eventually('the server is connected again', stepMs, () =>
    service.logged('the database can be used again').at(0),
  );
  t.diagnostic(`${((performance.now() - fromMs) / 1000).toFixed(1)} s`);
  assert.equal(await service.stop(), 0, service.stderr());
});
