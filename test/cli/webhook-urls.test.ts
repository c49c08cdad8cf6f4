import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newMasterKeyText } from '../../src/keys/key-ring.ts';
import { runHere } from '../support/artseal.ts';
import { readableNames } from '../support/copy-folder.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';

const target = '/api/v1/webhooks';
const url = 'https://gallery.example/hooks/unspoken-path?token=unspoken-query';

/** The files of a data folder that have the secret part of the URL. */
function filesWithUrl(dataDir: string): readonly string[] {
  return readableNames(dataDir)
    .filter((name) => readFileSync(join(dataDir, name)).includes('unspoken'))
    .sort();
}

/** A service, and a platform of it with an endpoint. */
async function withEndpoint(t: TestContext) {
  const masterKey = newMasterKeyText().trim();
  const service = await startService(t, { env: { ARTSEAL_MASTER_KEY: masterKey } });
  const { dataDir } = service;
  const gallery = await service.platform();
  const added = await send(service.publicUrl, gallery, { target, body: JSON.stringify({ url }) });
  assert.equal(added.json.webhook.url, url);
  const { webhookId } = added.json.webhook;
  const env = { ARTSEAL_MASTER_KEY: masterKey, ARTSEAL_DATA_DIR: dataDir };
  return { service, gallery, webhookId, dataDir, env };
}

test('no file has the URL of a webhook as plain text, and its owner reads all of it', async (t) => {
  const { service, gallery, webhookId, dataDir } = await withEndpoint(t);
  assert.deepEqual(filesWithUrl(dataDir), []);
  const one = `${target}/${webhookId}`;
  assert.equal((await send(service.publicUrl, gallery, { target: one })).json.url, url);
  const body = JSON.stringify({ url: `${url}&more=unspoken` });
  const changed = await send(service.publicUrl, gallery, { method: 'PATCH', target: one, body });
  assert.equal(changed.json.url, `${url}&more=unspoken`);
  const { json } = await send(service.publicUrl, gallery, { target });
  assert.equal(json.webhooks[0].url, `${url}&more=unspoken`);
  assert.deepEqual(filesWithUrl(dataDir), []);
  assert.ok(!service.logLines.join('').includes('unspoken'));
});

test('operators see only the origin of the URL of a webhook', async (t) => {
  const { service, webhookId, env } = await withEndpoint(t);
  await service.close();
  for (const words of [['list'], ['show', webhookId], ['list', '--json'], ['disable', webhookId]]) {
    const { code, printed } = await runHere(['webhooks', ...words], env);
    assert.equal(code, 0);
    assert.match(printed.join(), /https:\/\/gallery\.example/);
    assert.doesNotMatch(printed.join(), /unspoken/);
  }
  assert.doesNotMatch((await runHere(['audit-log', '--json'], env)).printed.join(), /unspoken/);
});
