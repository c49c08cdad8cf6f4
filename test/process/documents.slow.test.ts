import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { getEvidence } from '../support/calls.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { freeAddress } from '../support/free-address.ts';
import { cloneProject } from '../support/project-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The code blocks of a document in one language. */
const blocksOf = (document: string, language: string) =>
  codeBlocks(documentText(document), language).map((code) => code.trim());

/** A folder with the command `artseal`, which runs the checkout that the shell is in. */
function commandFolder(t: TestContext): string {
  const folder = join(temporaryFolder(t), 'bin');
  mkdirSync(folder);
  writeFileSync(join(folder, 'artseal'), '#!/bin/sh\nexec npm run -s artseal -- "$@"\n', { mode: 0o755 });
  return folder;
}

/** The environment with the system's node and npm, without the variables of an outer npm. */
function bareEnvironment(t: TestContext, addresses: Record<string, string>): NodeJS.ProcessEnv {
  const isOuter = (name: string) =>
    /^(npm_|ARTSEAL_|NODE_|INIT_CWD)/i.test(name) && name !== 'NODE_EXTRA_CA_CERTS';
  const kept = Object.entries(process.env).filter(([name]) => !isOuter(name));
  const path = (process.env.PATH ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'));
  return { ...Object.fromEntries(kept), PATH: [commandFolder(t), ...path].join(delimiter), ...addresses };
}

test('the commands of the documents work when pasted in a fresh clone', async (t) => {
  const cwd = temporaryFolder(t);
  cloneProject(cwd);
  const addresses = {
    ARTSEAL_PUBLIC_ADDR: await freeAddress(),
    ARTSEAL_INTERNAL_ADDR: await freeAddress(),
    ARTSEAL_METRICS_ADDR: await freeAddress(),
  };
  const env = bareEnvironment(t, addresses);
  const [start = '', call = '', typedCall = '', ...tests] = blocksOf('README.md', 'sh');
  assert.deepEqual([start, tests], ['npm ci && npm start', ['npm ci && npm test']]);

  // Its own process group, since npm start runs a shell, npm and the service.
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

  const here = (code: string) =>
    code
      .replaceAll('127.0.0.1:8080', addresses.ARTSEAL_PUBLIC_ADDR)
      .replaceAll('127.0.0.1:8081', addresses.ARTSEAL_INTERNAL_ADDR)
      .replaceAll('127.0.0.1:9464', addresses.ARTSEAL_METRICS_ADDR);
  const run = async (code: string, more = {}): Promise<string> =>
    (await promisify(execFile)('sh', ['-c', here(code)], { cwd, env: { ...env, ...more } })).stdout;

  /** Runs a command that does not end by itself. Returns its output up to this text. */
  async function begun(code: string, upTo: string): Promise<string> {
    const shell = spawn('sh', ['-c', here(code)], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    try {
      for await (const chunk of shell.stdout) {
        printed += chunk;
        if (printed.includes(upTo)) return printed;
      }
      return assert.fail(`It ended with ${printed}`);
    } finally {
      if (shell.pid !== undefined && shell.exitCode === null) process.kill(-shell.pid, 'SIGKILL');
    }
  }

  const { filingNo } = JSON.parse(await run(call));
  assert.match(filingNo, /^AS-\d{4}-000001$/);
  assert.equal(JSON.parse(await run(typedCall)).filings[0].filingNo, filingNo);
  const ofSandbox = JSON.parse(readFileSync(join(cwd, 'data', 'sandbox-credentials.json'), 'utf8'));
  const guides = ['signing', 'filing', 'escrow', 'webhooks', 'errors'];
  const [
    access = '',
    signing = '',
    file = '',
    fileWithPhotograph = '',
    fetchEvidence = '',
    verify = '',
    certificate = '',
    fetchPriceless = '',
    open = '',
    read = '',
    ...later
  ] = guides.flatMap((guide) => blocksOf(`docs/platforms/${guide}.md`, 'sh'));
  const credentials = access.replace(/ak_.*/, ofSandbox.apiKey).replace(/sk_.*/, ofSandbox.apiSecret);
  /** Runs a call of a guide in a shell that has the function of the first guide. */
  const signed = async (code: string) =>
    run([credentials, signing, code.replace('AS-2026-000001', filingNo)].join('\n'));
  assert.match(JSON.parse(await signed(file)).filingNo, /^AS-\d{4}-000002$/);
  writeFileSync(join(cwd, 'front.jpg'), 'a photograph');
  assert.match(JSON.parse(await signed(fileWithPhotograph)).filingNo, /^AS-\d{4}-000003$/);
  await getEvidence({ publicUrl: `http://${addresses.ARTSEAL_PUBLIC_ADDR}` }, ofSandbox, filingNo);
  await signed(fetchEvidence);
  assert.match(await run(verify), /^VERIFIED: the filing AS-\d{4}-000001 is in the log/);
  assert.match(await signed(certificate), /^VERIFIED: the filing AS-\d{4}-000001 is in the log/);
  await signed(fetchPriceless);
  assert.match(await run(verify.replace('evidence.json', 'priceless.json')), /^ {2}hidden {5}price$/m);
  assert.equal(JSON.parse(await signed(open)).state, 'FROZEN');
  assert.equal(JSON.parse(await signed(read)).next, 4);
  const [add = '', tryOut = '', ...further] = later;
  const { webhook, secret } = JSON.parse(await signed(add));
  assert.match(secret, /^whsec_/);
  // The host does not exist.
  assert.equal(JSON.parse(await signed(tryOut.replace(/wh_\w+/, webhook.webhookId))).delivered, false);
  assert.deepEqual(further, []);

  // test/clients/internal.ts runs the others.
  const [listed = '', generating = '', , , , watched = '', ...others] = blocksOf('docs/internal.md', 'sh');
  assert.equal(JSON.parse(await run(listed)).filings.length, 3);
  assert.match(await begun(watched, '"sequence": "2"'), /"filing.created"/);
  assert.deepEqual(others, []);
  const [program = ''] = blocksOf('docs/internal.md', 'ts');
  await run('npm run build:protos');
  const project = join(cwd, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"type":"module"}');
  writeFileSync(join(project, 'program.ts'), here(program));
  await run(`cd project\ncp ../dist/artseal-protos-*.tar.gz .\n${generating}`);
  assert.equal(await run('npx node project/program.ts', { TOKEN: ofSandbox.token }), '3\n');

  const demo = await run('npm run demo');
  for (const shown of ['"status":"SUBMITTED"', '"state":"FROZEN"', 'RELEASED', '"event":"TRANSFER"']) {
    assert.ok(demo.includes(shown), `${shown} is not in ${demo}`);
  }
});
