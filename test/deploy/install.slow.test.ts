import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { buildInfo } from '../../src/packaging/build-info.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { documentText } from '../support/documents.ts';
import { fileScope } from '../support/file-scope.ts';
import { copyProject } from '../support/project-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { BoundedResult } from '../support/watched-command.ts';
import { bootMachine, type Machine, skipUnlessBootable } from './machine.ts';

const packageVersion = buildInfo.version.replace('-', '~');
const packageName = `artseal_${packageVersion}_amd64.deb`;

/** The pages of which this file runs every command. */
const pages = [
  ...['install', 'monitor', 'backup-and-restore', 'security', 'upgrade'],
  'incidents/server-hangs',
];

/** The command blocks of these pages that no test has run yet, by section and position. */
const blocks = new Map<string, string>(
  pages.flatMap(sectionsOf).flatMap((section) => {
    const [heading = ''] = section.split('\n', 1);
    return Array.from(
      section.matchAll(/^( *)```sh\n(.*?)^ *```$/gms),
      ([, indent = '', text = ''], place) =>
        [`${heading} ${place + 1}`, text.replaceAll(new RegExp(`^${indent}`, 'gm'), '').trim()] as const,
    );
  }),
);

function sectionsOf(page: string): string[] {
  return documentText(`docs/operate/${page}.md`).split(/^## /m);
}

/** Takes a block of commands. */
function commandsOf(section: string, place = 1): string {
  const name = `${section} ${place}`;
  const commands = blocks.get(name);
  assert.ok(commands !== undefined, `no page has the commands ${name}`);
  blocks.delete(name);
  return commands;
}

/** The restrictions of a service, in the order of its unit file. */
function restrictions(unit: string): string[] {
  const lines = readFileSync(join(projectFolder, 'deploy', 'systemd', unit), 'utf8').split('\n');
  return lines
    .slice(lines.indexOf('ProtectSystem=strict'))
    .filter((line) => /^[A-Z]\w+=/.test(line) && !line.startsWith('WantedBy='));
}

/** The stages of a Dockerfile, each as its instructions, a line each. */
function stages(dockerfile: string): string[][] {
  const [, ...stages] = dockerfile.replaceAll(/ *\\\n */g, ' ').split(/^(?=FROM )/m);
  return stages.map((stage) => stage.split('\n').filter((line) => /^[A-Z]/.test(line)));
}

/** The text of an instruction of a stage. */
function wordsOf(stage: readonly string[], instruction: string): string {
  return stage.find((line) => line.startsWith(`${instruction} `))?.slice(instruction.length + 1) ?? '';
}

/** Copies the project into a folder, and builds the executable and the package there. */
async function makePackage(folder: string): Promise<void> {
  copyProject(folder);
  const env = { ...process.env, ARTSEAL_COMMIT: '0'.repeat(40), SOURCE_DATE_EPOCH: '1795000000' };
  const run = promisify(execFile);
  await run(process.execPath, ['build/binary.ts'], { cwd: folder, env });
  const bytes: Buffer[] = [];
  for (let time = 0; time < 2; time += 1) {
    const { stdout } = await run('build/deb', { cwd: folder, env });
    assert.equal(stdout, `dist/${packageName}\n`);
    bytes.push(readFileSync(join(folder, 'dist', packageName)));
  }
  assert.ok(bytes[0]?.equals(bytes[1] ?? Buffer.of()), 'the same executable gives the same package');
}

const skip = skipUnlessBootable();
const machine = skip === false ? await machineWithPackage() : undefined;

/** A machine with the project and its built package at /media. */
async function machineWithPackage(): Promise<Machine> {
  const folder = join(temporaryFolder(fileScope), 'artseal');
  await makePackage(folder);
  return bootMachine(fileScope, folder);
}

/** Runs commands on the machine. */
async function tried(commands: string): Promise<BoundedResult> {
  assert.ok(machine !== undefined);
  return machine.run(commands);
}

/** Runs commands in the folder with the package; they must succeed. Returns their output. */
async function done(commands: string): Promise<string> {
  const { code, stdout, stderr } = await tried(`set -e; cd /media/dist\n${commands}`);
  assert.equal(code, 0, `${commands}\n${stdout}${stderr}`);
  return stdout;
}

/** A property of a unit in systemd. */
async function shown(property: string, unit = 'artseal'): Promise<string> {
  return (await done(`systemctl show --value --property=${property} ${unit}`)).trim();
}

test('three commands lead to ready, and to a first filing', { skip }, async () => {
  assert.equal((await tried('command -v node npm')).code, 127);
  const sandbox = commandsOf('Sandbox');
  assert.equal(sandbox.split('\n').length, 3);
  const answer = (await done(sandbox)).split('\n').find((line) => line.startsWith('{'));
  assert.match(JSON.parse(answer ?? '').filingNo, /^AS-\d{4}-000001$/);
  assert.equal(await done('curl -sS http://127.0.0.1:8080/readyz'), '{"status":"ok"}');
});

test('the package has the man page and completions, for artseal-admin too', { skip }, async () => {
  for (const [name, section] of [
    ['artseal', 1],
    ['artseal-admin', 8],
  ]) {
    assert.match(
      await done(`zcat /usr/share/man/man${section}/${name}.${section}.gz`),
      /^\.TH ARTSEAL 1 2026-11-18 /,
    );
    assert.match(
      await done(`bash -c '. /usr/share/bash-completion/completions/${name}; complete -p ${name}'`),
      /^complete -F _artseal artseal/,
    );
    assert.match(
      await done(`cat /usr/share/fish/vendor_completions.d/${name}.fish`),
      /^complete -c artseal-admin /m,
    );
  }
  assert.match(
    await done('cat /usr/share/zsh/vendor-completions/_artseal'),
    /^#compdef artseal artseal-admin\n/,
  );
});

test('the service runs as a user without privileges, and only that user can read its data', {
  skip,
}, async () => {
  const status = await done(`cat /proc/${await shown('MainPID')}/status`);
  assert.doesNotMatch(status, /^Uid:\t0/m);
  for (const line of ['CapPrm:\t0{16}', 'CapBnd:\t0{16}', 'NoNewPrivs:\t1', 'Seccomp:\t2'])
    assert.match(status, new RegExp(`^${line}$`, 'm'));
  const asNobody = 'setpriv --reuid=nobody --regid=nogroup --clear-groups';
  for (const path of ['/var/lib/artseal/artseal.db', '/etc/artseal/artseal.env', '/run/artseal'])
    assert.notEqual((await tried(`${asNobody} ls ${path}`)).code, 0, path);
});

test('the process is named artseal, leaves no core dump, and has limits of memory and processes', {
  skip,
}, async () => {
  const pid = await shown('MainPID');
  assert.equal((await done(`cat /proc/${pid}/comm`)).trim(), 'artseal');
  assert.match(await done(`ps --no-headers -o args ${pid}`), /^artseal/);
  assert.match(await done(`cat /proc/${pid}/task/*/comm`), /^artseal-store$/m);
  for (const unit of ['artseal', 'artseal-backup']) {
    assert.equal(await shown('LimitCORE', unit), '0');
    for (const limit of ['MemoryHigh', 'MemoryMax', 'TasksMax'])
      assert.match(await shown(limit, unit), /^\d{1,12}$/, `${limit} of ${unit}`);
  }
  assert.match(await done('dpkg --status artseal'), /^Depends:.*\bprocps\b/m);
});

test('the backup service gets no setting, and so no key of the payment provider', { skip }, async () => {
  assert.equal(await shown('EnvironmentFiles', 'artseal-backup'), '');
  assert.match(await shown('Environment', 'artseal-backup'), /^ARTSEAL_DATA_DIR=\S+$/);
});

test('systemd finds no fault with the units, and little exposure', { skip }, async () => {
  assert.equal(
    await done('systemd-analyze verify artseal.service artseal-backup.service artseal-backup.timer 2>&1'),
    '',
  );
  for (const [unit, limit] of Object.entries({ artseal: 2, 'artseal-backup': 1 })) {
    const exposure = /exposure level for \S+: ([\d.]+)/.exec(await done(`systemd-analyze security ${unit}`));
    assert.ok(Number(exposure?.[1]) < limit, `${unit}: ${exposure?.[1]}`);
  }
});

test('wrong settings end the start at once, with the reason in the log', {
  skip,
}, async () => {
  await done('echo ARTSEAL_CURRENCY=XYZ >>/etc/artseal/artseal.env');
  assert.equal((await tried('systemctl restart artseal')).code, 1);
  assert.match(await done('journalctl -u artseal -o cat'), /^artseal: ARTSEAL_CURRENCY must be an ISO 4217/m);
  assert.deepEqual([await shown('ActiveState'), await shown('NRestarts')], ['failed', '0']);
  await done('sed -i /XYZ/d /etc/artseal/artseal.env; systemctl restart artseal');
});

test('systemd restarts a killed service, which has all answered filings', { skip }, async () => {
  await done('kill -KILL $(systemctl show --value --property=MainPID artseal)');
  await done('until [ $(systemctl show --value --property=NRestarts artseal) = 1 ]; do sleep 0.05; done');
  await done('systemctl start artseal');
  assert.match(await done('artseal-admin call GET /api/v1/filing'), /-000001/);
});

test('the log is one JSON line a call', { skip }, async () => {
  const lines = (await done(commandsOf('Logs'))).split('\n').filter((line) => line.includes('"msg":"call"'));
  assert.ok(lines.length > 0);
  for (const line of lines) assert.equal(JSON.parse(line).status, 200);
});

test('a call is found by its request id, and the clock of the sandbox is advanced', { skip }, async () => {
  await done('artseal-admin call GET /api/v1/filing');
  const newest = await done('artseal-admin requests --api PUBLIC --limit 1 --json');
  const { requestId, caller } = JSON.parse(newest);
  const commands = commandsOf('Last calls').replace('ID', requestId).replace('Gallery One', caller);
  assert.match(await done(commands), new RegExp(` 200 .* ${requestId}\n$`));
  assert.match(await done(commandsOf('Sandbox', 2)), /^sandbox clock /);
  assert.match(await done('artseal-admin call GET /api/v1/filing'), /-000001/);
});

test('only its group can use a Unix socket of the internal API', { skip }, async () => {
  await done('echo ARTSEAL_INTERNAL_ADDR=unix:/run/artseal/internal.sock >>/etc/artseal/artseal.env');
  await done('systemctl restart artseal; useradd other; useradd --groups artseal-internal member');
  const ask = 'curl --silent --unix-socket /run/artseal/internal.sock http://localhost/';
  const inGroup = (user: string) => tried(`setpriv --reuid=${user} --regid=${user} --init-groups ${ask}`);
  const [couldNotConnect, member] = [7, await inGroup('member')];
  assert.deepEqual([member.code, (await inGroup('other')).code], [0, couldNotConnect]);
  await done('sed -i /INTERNAL_ADDR/d /etc/artseal/artseal.env; systemctl restart artseal');
});

test('production.conf fits the unit, port 443 included', { skip }, async () => {
  await done(`
    mkdir /etc/systemd/system/artseal.service.d
    cd /etc/systemd/system/artseal.service.d
    sed 's/^#\\([A-Z]\\)/\\1/' /usr/share/doc/artseal/examples/production.conf >production.conf
    echo ARTSEAL_PUBLIC_ADDR=127.0.0.1:443 >>/etc/artseal/artseal.env
    systemctl daemon-reload
    systemctl restart artseal`);
  assert.equal(await done('systemd-analyze verify artseal.service 2>&1'), '');
  assert.match(await done('artseal-admin call GET /api/v1/filing'), /-000001/);
  await done(`rm -r /etc/systemd/system/artseal.service.d
    sed -i /443/d /etc/artseal/artseal.env
    systemctl daemon-reload`);
});

test('a backup is taken and verified, and a newer package reports the upgrade', { skip }, async () => {
  assert.match(await done(commandsOf('Take backups')), /1 filings[\s\S]*sound: /);
  assert.match(await done('artseal-admin backup /var/lib/artseal-backups/now.tar'), /^1 filings/m);
  const elsewhere = await tried('artseal-admin backup /tmp/now.tar');
  assert.equal(elsewhere.code, 1);
  assert.match(
    elsewhere.stderr,
    /FILE must be in one of \/var\/lib\/artseal, \/var\/lib\/artseal-backups: the service can write nowhere else/,
  );
  assert.match(await done(commandsOf('Upgrade')), /there is nothing to do/);
});

test('a server that hangs is killed after a backup without it, and starts again', { skip }, async () => {
  const before = await shown('MainPID');
  await done(`kill -STOP ${before}`);
  assert.match(await done(commandsOf('# The server hangs')), /^ *\d+ T/m);
  assert.match(await done(commandsOf('# The server hangs', 2)), /1 filings[\s\S]*^sound: /m);
  await done(commandsOf('# The server hangs', 3));
  const after = '$(systemctl show --value --property=MainPID artseal)';
  await done(`until [ ${after} != 0 ] && [ ${after} != ${before} ]; do sleep 0.05; done`);
  await done('systemctl start artseal');
  assert.equal(await done('artseal-admin ready'), 'ready\n');
});

test('an upgrade of the package restarts the service with its data', { skip }, async () => {
  const before = await shown('MainPID');
  await done(commandsOf('Upgrade', 2));
  assert.notEqual(await shown('MainPID'), before);
  assert.match(await done('artseal-admin call GET /api/v1/filing'), /-000001/);
});

test('the version before is installed, with all data; a prerelease is older than its release', {
  skip,
}, async () => {
  await done(commandsOf('Go back'));
  assert.match(await done('artseal-admin call GET /api/v1/filing'), /-000001/);
  const [, installed] = /^Version: (.*)$/m.exec(await done('dpkg --status artseal')) ?? [];
  assert.equal(installed, packageVersion);
  await done(`dpkg --compare-versions '${installed}' lt '${installed.split('~')[0]}-1'`);
});

test('the copy from before an upgrade is put back', { skip }, async () => {
  // Stands for the copy: no earlier version has a schema to upgrade.
  await done(`systemctl stop artseal
    cp -p /var/lib/artseal/artseal.db /var/lib/artseal/artseal.db.schema-1.backup`);
  await done(commandsOf('Put back the old database'));
  await done('systemctl start artseal');
  assert.match(await done('artseal-admin call GET /api/v1/filing'), /-000001/);
});

test('four steps set up a production', { skip }, async () => {
  for (const step of [1, 2, 3]) await done(commandsOf('Production', step));
  assert.match(await done(commandsOf('Production', 4)), /ak_live_/);
  assert.equal(await shown('ActiveState'), 'active');
  assert.equal(await shown('ActiveState', 'artseal-backup.timer'), 'active');
  assert.match((await tried('artseal-admin check')).stdout, /^ok +backup +the last verified one was taken/m);
});

test('the master key is rotated while the service runs', { skip }, async () => {
  const before = await shown('MainPID');
  assert.match(await done(commandsOf('Rotate the master key')), /^master keys +reloaded: k2, k1$/m);
  assert.match(await done(commandsOf('Rotate the master key', 2)), /after +k2: 2$/m);
  assert.match(
    await done("sed -i '/^k1:/d' /etc/artseal/master-key; artseal-admin reload"),
    /^master keys +reloaded: k2$/m,
  );
  assert.match(await done('artseal-admin key list'), /Gallery One/);
  assert.match(await done('artseal-admin audit-log'), / key create .* by local:root$/m);
  assert.equal(await shown('MainPID'), before);
});

test('a backup is restored', { skip }, async () => {
  await done('systemctl start artseal-backup');
  await done(commandsOf('Restore'));
  assert.match(
    await done(commandsOf('Restore', 2)),
    /restored \/var\/lib\/artseal-backups\/restored: production/,
  );
  for (const step of [3, 4]) await done(commandsOf('Restore', step));
  assert.equal(await shown('ActiveState'), 'active');
  await done('rm -r /var/lib/private/artseal-before');
});

test('removing the package leaves data and master key until they are deleted', { skip }, async () => {
  assert.match(await done(commandsOf('Uninstall')), /kept \/var\/lib\/private\/artseal;/);
  assert.equal((await tried('command -v artseal || systemctl cat artseal')).code, 1);
  await done('test -s /var/lib/private/artseal/artseal.db; test -s /etc/artseal/master-key');
  await done(commandsOf('Uninstall', 2));
  assert.equal(await done('find /etc /opt /run /srv /usr /var -name "*artseal*"'), '');
});

test('the service runs without the package', { skip }, async () => {
  await done(`cd /media; ${commandsOf('Without the package')}`);
  assert.equal(await shown('ActiveState'), 'active');
});

test('the image serves with a read-only file system and a volume', { skip }, async () => {
  const [build = [], image = []] = stages(
    readFileSync(join(projectFolder, 'deploy/container/Dockerfile'), 'utf8'),
  );
  // What the first stage does, but for the packages, which this machine has.
  const [sources = '', target = ''] = wordsOf(build, 'COPY').split(/ (?=\S+$)/);
  await done(`mkdir ${target}; cd /media; cp ${sources} ${target}`);
  await done(build.at(-1)?.replace('RUN ', '') ?? '');
  assert.equal(wordsOf(image, 'COPY'), '--from=build /root-filesystem/ /');

  const [user, group] = wordsOf(image, 'USER').split(':');
  // systemd looks them up on the machine.
  await done(`systemctl stop artseal; groupadd -g ${group} image; useradd -u ${user} -g ${group} image`);
  const run = (name: string, words: readonly string[]) =>
    ['systemd-run --quiet --service-type=exec', name, '--property=RootDirectory=/root-filesystem']
      .concat(`--property=User=${user}`, `--property=Group=${group}`, '--property=MountAPIVFS=yes')
      .concat('--property=ReadOnlyPaths=/', `--property=ReadWritePaths=${wordsOf(image, 'VOLUME')}`)
      .concat('--property=CapabilityBoundingSet=', '--property=NoNewPrivileges=yes')
      .concat(
        wordsOf(image, 'ENV')
          .split(' ')
          .map((pair) => `--setenv=${pair}`),
        words,
      )
      .join(' ');
  const [program, command, check] = ['ENTRYPOINT', 'CMD', 'HEALTHCHECK'].map((name): string[] =>
    JSON.parse(wordsOf(image, name).replace(/^.* CMD /, '')),
  );
  await done(run('--unit=image', [...(program ?? []), ...(command ?? [])]));
  const healthy = run('--pipe --wait', check ?? []);
  await done(`until ${healthy}; do sleep 0.2; done`);
  await done('systemctl stop image');
  assert.equal(await shown('Result', 'image'), 'success');
});

test('all commands of the pages were run', { skip }, () => {
  assert.deepEqual([...blocks.keys()], []);
});

test('artseal-admin has the restrictions of the service', () => {
  const script = readFileSync(join(projectFolder, 'deploy', 'systemd', 'artseal-admin'), 'utf8');
  const given = Array.from(
    script.matchAll(/'--property=([^']+)'|--property=(\S+)/g),
    ([, quoted, plain]) => quoted ?? plain,
  );
  for (const line of ['LimitCORE=0', ...restrictions('artseal.service')])
    assert.ok(given.includes(line), line);
});

test('the backup service has the restrictions of the service, and no network', () => {
  const families = /^RestrictAddressFamilies=.*/;
  assert.deepEqual(
    restrictions('artseal-backup.service').filter((line) => line !== 'PrivateNetwork=yes'),
    restrictions('artseal.service').map((line) => line.replace(families, 'RestrictAddressFamilies=AF_UNIX')),
  );
});
