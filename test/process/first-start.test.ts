import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileArtwork } from '../support/calls.ts';
import { readDatabase } from '../support/engine.ts';
import { openSocket } from '../support/raw-talk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { runShell, serveWatched } from '../support/watched-command.ts';

const modeOf = (file: string): number => statSync(file).mode & 0o777;

test('the first start of a sandbox makes credentials that work, keeps them secret, and never makes others', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = join(temporaryFolder(t), 'new', 'data');
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const service = await serveWatched(t, { ...env, ARTSEAL_LOG_LEVEL: 'trace' });
  const { publicUrl, internalUrl } = service;
  const files = ['sandbox-credentials.json', 'master-key'].map((name) => join(dataDir, name));
  const contents = () => files.map((file) => readFileSync(file, 'utf8'));
  const [credentialsText = '', masterKeyText = ''] = contents();
  const { token, ...platform } = JSON.parse(credentialsText);

  await t.test('it prints one ready line when both listeners accept connections', async () => {
    for (const url of [publicUrl, internalUrl]) assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    for (const url of [publicUrl, internalUrl]) (await openSocket(url)).destroy();
    assert.equal(service.stdout().match(/^artseal ready\b/gm)?.length, 1);
  });

  await t.test('key and token work, and only their user can read them', async () => {
    const { headers, status } = await fileArtwork(service, platform);
    assert.deepEqual([status, headers['ratelimit-policy']], [200, '"qps";q=200;w=1']);
    for (const file of files) assert.equal(modeOf(file), 0o600);
    assert.equal(modeOf(dataDir) & 0o077, 0);
    const log = await typedCall(internalUrl, token, 'AdminService/ListAuditLog', {});
    for (const [place, action] of ['token create', 'key create'].entries()) {
      const entry = log.json.entries[place];
      assert.deepEqual([entry.action, entry.reason], [action, 'first start of a sandbox']);
      assert.match(entry.actor, /^local:\S+$/);
    }
  });

  await t.test('the first call that it prints works when it is pasted', async () => {
    const pasted = service.stdout().match(/^ *(?:npm run -s artseal --|artseal) call .*$/m)?.[0] ?? '';
    const call = await runShell(t, pasted, { ...env, ARTSEAL_PUBLIC_ADDR: new URL(publicUrl).host });
    assert.equal(call.code, 0, call.stderr);
    assert.match(JSON.parse(call.stdout).filingNo, /^AS-\d{4}-000002$/);
    assert.match(service.stdout(), /^All calls in a row: .*artseal.* demo$/m);
    assert.ok(service.stdout().includes(`\nIn a browser: ${publicUrl}/docs/\n`));
  });

  await fileArtwork(service, { ...platform, apiSecret: 'wrong' });
  const inUse = readdirSync(dataDir).filter((name) => name.startsWith('artseal.db'));
  const stored = Buffer.concat(inUse.map((name) => readFileSync(join(dataDir, name))));
  assert.equal(await service.stop('SIGKILL'), null);

  const again = await serveWatched(t, env);
  assert.equal((await fileArtwork(again, platform)).status, 200);
  assert.equal((await typedCall(again.internalUrl, token, 'AdminService/ListKeys', {})).status, 200);
  assert.deepEqual(contents(), [credentialsText, masterKeyText]);
  assert.equal(await again.stop(), 0);
  assert.match(again.stdout(), /^artseal ready [^\n]*\n$/);

  const { apiSecret } = platform;
  const masterKey = masterKeyText.split(':')[1]?.trim() ?? '';
  assert.equal(masterKey.length, 64);
  assert.ok(service.stderr().includes('"msg"'), 'something was logged');
  const [database, tokens] = await readDatabase(dataDir, (client) => [
    client.serialize(),
    client.prepare('SELECT sha256 FROM service_token').pluck().all(),
  ]);
  for (const text of [stored, database, service.stderr(), service.stdout()]) {
    for (const secret of [apiSecret, apiSecret.slice(11), token, token.slice(11), masterKey])
      assert.equal(text.includes(secret), false);
  }
  assert.deepEqual(tokens, [createHash('sha256').update(token).digest()]);
});
