import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newMasterKeyText } from '../../src/keys/key-ring.ts';
import { artsealWith } from '../support/artseal.ts';
import { readableNames } from '../support/copy-folder.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';

const target = '/api/v1/webhooks';
const origin = 'https://gallery.example';
const url = `${origin}/hooks/unspoken-path?token=unspoken-query`;

/** The files of a data folder that have the secret part of the URL. */
const filesWithUrl = (dataDir: string): readonly string[] =>
  readableNames(dataDir).filter((name) => readFileSync(join(dataDir, name)).includes('unspoken'));

/** A service, and a platform of it with a webhook. */
async function withWebhook(t: TestContext) {
  const masterKey = newMasterKeyText().trim();
  const service = await startService(t, { env: { ARTSEAL_MASTER_KEY: masterKey } });
  const gallery = await service.platform();
  const added = await send(service.publicUrl, gallery, { target, body: JSON.stringify({ url }) });
  assert.equal(added.json.webhook.url, url);
  const { webhookId } = added.json.webhook;
  const env = { ARTSEAL_MASTER_KEY: masterKey, ARTSEAL_DATA_DIR: service.dataDir };
  return { service, gallery, webhookId, one: `${target}/${webhookId}`, env };
}

test('no file has the URL of a webhook as plain text, and its owner reads all of it', async (t) => {
  const { service, gallery, one } = await withWebhook(t);
  assert.deepEqual(filesWithUrl(service.dataDir), []);
  assert.equal((await send(service.publicUrl, gallery, { target: one })).json.url, url);
  const body = JSON.stringify({ url: `${url}&more=unspoken` });
  const changed = await send(service.publicUrl, gallery, { method: 'PATCH', target: one, body });
  assert.equal(changed.json.url, `${url}&more=unspoken`);
  const { json } = await send(service.publicUrl, gallery, { target });
  assert.equal(json.webhooks[0].url, `${url}&more=unspoken`);
  assert.deepEqual(filesWithUrl(service.dataDir), []);
  assert.ok(!service.logLines.join('').includes('unspoken'));
});

test('if the master key is lost, secrets rotate gives webhooks a new secret, shown once', async (t) => {
  const { service, gallery, webhookId, one, env: lost } = await withWebhook(t);
  await service.close();
  const env = { ...lost, ARTSEAL_MASTER_KEY: newMasterKeyText().trim() };
  const artseal = artsealWith(env);
  const lines = await artseal.list('secrets rotate');
  const [{ secret, ...rotated }] = lines.filter((line) => line.webhookId !== undefined);
  assert.deepEqual(rotated, { caller: gallery.caller, webhookId, lostUrl: origin });

  const again = await startService(t, { dataDir: service.dataDir, env });
  const page = { from: undefined, size: 9 };
  const [stored] = (await again.execute({ kind: 'ListWebhooks', owner: undefined, page })).items;
  const sealed = stored?.sealedSecret ?? assert.fail();
  assert.equal(again.keyRing.open(sealed, webhookId).export().toString(), secret);
  // The URL is lost as well: the owner sets it again.
  const issued = lines.find(({ apiKey }) => apiKey !== undefined);
  const { json } = await send(again.publicUrl, issued, { target: one });
  assert.deepEqual([json.url, json.status], [origin, 'DISABLED']);
  const body = JSON.stringify({ url, status: 'ENABLED' });
  const mended = await send(again.publicUrl, issued, { method: 'PATCH', target: one, body });
  assert.deepEqual([mended.json.url, mended.json.status], [url, 'ENABLED']);
  const { items } = await again.execute({ kind: 'ListAuditLog', sinceS: undefined, page });
  const actions = items.filter(({ subject }) => subject === webhookId).map(({ action }) => action);
  assert.ok(actions.includes('webhook disable') && actions.includes('webhook rotate-secret'), actions.join());
  assert.ok(![secret, 'unspoken'].some((text) => JSON.stringify(items).includes(text)));
  await again.close();
  assert.match(await artseal.text('secrets rotate'), /every secret can be opened/);
});
