import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { freeAddress } from '../support/free-address.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = join(import.meta.dirname, '..', '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const blocks = Array.from(readme.matchAll(/^```sh\n(.*?)^```$/gms), ([, text = '']) => text.trim());
const notInAClone = ['node_modules', 'data', '.git'];

/** The project as somebody gets it who has nothing of this machine: no packages, no data. */
function freshCopy(t: TestContext): string {
  const copy = temporaryFolder(t);
  cpSync(root, copy, { recursive: true, filter: (path) => !notInAClone.includes(relative(root, path)) });
  return copy;
}

/** The machine's own environment: the system's node and npm, and nothing that an outer npm set. */
function bareEnvironment(addresses: Record<string, string>): NodeJS.ProcessEnv {
  const isOuter = (name: string) =>
    /^(npm_|ARTSEAL_|NODE_|INIT_CWD)/i.test(name) && name !== 'NODE_EXTRA_CA_CERTS';
  const kept = Object.entries(process.env).filter(([name]) => !isOuter(name));
  const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'));
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter), ...addresses };
}

test("the README's commands work when pasted in a fresh clone", async (t) => {
  const cwd = freshCopy(t);
  const addresses = { ARTSEAL_PUBLIC_ADDR: await freeAddress(), ARTSEAL_INTERNAL_ADDR: await freeAddress() };
  const env = bareEnvironment(addresses);
  const [start = '', ...calls] = blocks;
  assert.equal(start, 'npm ci && npm start');
  assert.equal(calls.pop(), 'npm ci && npm test');

  // A process group of its own, since npm start is a shell, npm and the service.
  const serving = spawn('sh', ['-c', start], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => serving.pid && process.kill(-serving.pid, 'SIGKILL'));
  let output = '';
  serving.stderr.on('data', (chunk) => {
    output += chunk;
  });
  for await (const chunk of serving.stdout) {
    output += chunk;
    if (output.includes('artseal ready')) break;
  }
  assert.match(output, /^artseal ready /m);

  const here = (block: string) =>
    block
      .replaceAll('127.0.0.1:8080', addresses.ARTSEAL_PUBLIC_ADDR)
      .replaceAll('127.0.0.1:8081', addresses.ARTSEAL_INTERNAL_ADDR);
  const answers: string[] = [];
  for (const block of calls) {
    const { stdout } = await promisify(execFile)('sh', ['-c', here(block)], { cwd, env });
    answers.push(stdout);
  }
  const [call = '', curl = '', openssl = '', typed = '', ...more] = answers;
  assert.equal(more.length, 0);
  assert.match(JSON.parse(call).filingNo, /^AS-\d{4}-000001$/);
  assert.match(JSON.parse(curl).filingNo, /^AS-\d{4}-000002$/);
  assert.equal(JSON.parse(openssl).author, 'Qi Baishi');
  assert.equal(JSON.parse(typed).filings.length, 2);

  const { stdout: demo } = await promisify(execFile)('npm', ['run', 'demo'], { cwd, env });
  for (const shown of ['"status":"SUBMITTED"', '"state":"FROZEN"', 'RELEASED', '"event":"TRANSFER"']) {
    assert.ok(demo.includes(shown), `${shown} is not in ${demo}`);
  }
});
