import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { run } from '../../build/client-generator.ts';
import { webhookSignature } from '../../src/events/webhooks/signature.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { publishedCases, type WebhookCase, webhookCases } from '../support/webhook-cases.ts';
import { answersOf, expectedOf } from './webhook-program.ts';

const timeoutMs = 60_000;
const section = documentText('docs/platforms/webhooks.md', 'Receiving webhooks');
const codeIn = (language: string) => codeBlocks(section, language).at(-1) ?? '';

/** The webhook in the document. */
function documentedCase(): WebhookCase {
  const [head = '', body = ''] = codeIn('http').trimEnd().split('\n\n');
  const headers = Object.fromEntries(
    Array.from(head.matchAll(/^(webhook-\w+): (.*)$/gm), ([, ...pair]) => pair),
  );
  const [secret = ''] = /whsec_[A-Za-z0-9+/=]+/.exec(section) ?? [];
  return { name: 'that of the document', secret, nowS: Number(headers['webhook-timestamp']), headers, body };
}

/** A webhook that was signed with an empty secret. */
function caseWithoutSecret(): WebhookCase {
  const { headers, ...webhook } = documentedCase();
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '' } = headers;
  const signature = webhookSignature({ id, timestamp, body: webhook.body }, new Uint8Array());
  const forged = { ...headers, 'webhook-signature': signature };
  return { ...webhook, name: 'no secret', secret: '', headers: forged, apiError: 'BAD_SECRET' };
}

const cases = [documentedCase(), ...publishedCases, ...webhookCases(1_795_222_800), caseWithoutSecret()];

/** Asserts that a program of test/clients/webhooks, with code of the document, accepts and rejects the right requests. */
async function assertVerifies(program: string, words: readonly string[]) {
  assert.deepEqual(await answersOf(program, words, cases), expectedOf(cases));
}

/** A folder with a program of test/clients/webhooks and the code of the document. */
function folderWith(t: TestContext, program: string, receiver: string, code: string): string {
  const folder = temporaryFolder(t);
  copyFileSync(join(import.meta.dirname, 'webhooks', program), join(folder, program));
  writeFileSync(join(folder, receiver), code);
  return folder;
}

test('the document verifies webhooks in Python', { skip: skipUnlessInstalled('python3') }, async (t) => {
  const folder = folderWith(t, 'verify.py', 'receiver.py', codeIn('python'));
  await assertVerifies('python3', [join(folder, 'verify.py')]);
});

test('the document verifies webhooks in PHP', { skip: skipUnlessInstalled('php') }, async (t) => {
  const folder = folderWith(t, 'verify.php', 'receiver.php', codeIn('php'));
  await assertVerifies('php', [join(folder, 'verify.php')]);
});

test('the document verifies webhooks in Go', { skip: skipUnlessInstalled('go') }, async (t) => {
  const folder = folderWith(t, 'main.go', 'receiver.go', `package main\n\n${codeIn('go')}`);
  writeFileSync(join(folder, 'go.mod'), 'module receiver\n\ngo 1.19\n');
  const env = { ...process.env, GOPROXY: 'off', GOFLAGS: '-buildvcs=false', GOTOOLCHAIN: 'local' };
  await run('go', ['vet', '.'], { cwd: folder, env });
  await run('go', ['build', '-o', 'verify', '.'], { cwd: folder, env });
  await assertVerifies(join(folder, 'verify'), []);
});

test('the document verifies webhooks in Java', { skip: skipUnlessInstalled('javac') }, async (t) => {
  const folder = folderWith(t, 'Main.java', 'Webhooks.java', codeIn('java'));
  await run('javac', ['-Xlint:all', '-Werror', 'Main.java', 'Webhooks.java'], { cwd: folder });
  await assertVerifies('java', ['-cp', folder, 'Main']);
});

test('the receiver of the document in Node returns 2xx for valid webhooks', async (t) => {
  const address = await freeAddress();
  const client = pathToFileURL(join(projectFolder, 'clients', 'typescript', 'src', 'webhook.ts')).href;
  const program = join(temporaryFolder(t), 'receiver.ts');
  const [host = '', port = ''] = address.split(':');
  const code = codeIn('ts')
    .replace("'@artseal/client'", `'${client}'`)
    .replace('listen(8000)', `listen(${port}, '${host}')`);
  writeFileSync(program, code);
  // The receiver uses the clock of the machine, and one secret.
  const [genuine, ...others] = webhookCases(Math.floor(Date.now() / 1000));
  assert.ok(genuine);
  const sent = [genuine, ...others].filter(({ secret }) => secret === genuine.secret);
  const env = { ...process.env, WEBHOOK_SECRET: genuine.secret };
  const receiver = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => receiver.kill('SIGKILL'));
  const post = ({ headers, body }: WebhookCase) =>
    fetch(`http://${address}/`, { method: 'POST', headers, body });
  await eventually('it listens', timeoutMs, () => post(genuine).then(Boolean, () => undefined));
  for (const webhook of sent) {
    const { status } = await post(webhook);
    assert.equal(status, webhook.apiError === undefined ? 204 : 400, webhook.name);
  }
});
