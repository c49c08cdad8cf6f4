import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { serialize } from 'node:v8';
import Sqlite from 'better-sqlite3';
import { readConfig } from '../../src/config/config.ts';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { MasterKeyError } from '../../src/keys/sealed-secrets.ts';
import { openUrl } from '../../src/keys/webhook-urls.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { goBack } from '../../src/store/sqlite/downgrade.ts';
import { takeBack } from '../../src/store/sqlite/downgrade-steps.ts';
import { copyBefore } from '../../src/store/sqlite/upgrade.ts';
import { runHere } from '../support/artseal.ts';
import { readableNames } from '../support/copy-folder.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { serveWatched } from '../support/watched-command.ts';

const target = '/api/v1/webhooks';
const url = 'https://gallery.example/hooks/unspoken-path?token=unspoken-query';
/** The last schema in which URLs were stored as plain text. */
const plainSchema = 18;

/** Whether a file of a data folder has a part of the URL that is a secret. */
function filesWithUrl(dataDir: string): readonly string[] {
  return readableNames(dataDir)
    .filter((name) => readFileSync(join(dataDir, name)).includes('unspoken'))
    .sort();
}

/** A registry of a platform with an endpoint, which is not served. */
async function withEndpoint(t: TestContext) {
  const masterKey = newMasterKeyText().trim();
  const service = await startService(t, { env: { ARTSEAL_MASTER_KEY: masterKey } });
  const { dataDir } = service;
  const gallery = await service.platform();
  const headers = { 'Idempotency-Key': 'added' };
  const added = await send(service.publicUrl, gallery, { target, body: JSON.stringify({ url }), headers });
  assert.equal(added.json.webhook.url, url);
  const { webhookId } = added.json.webhook;
  const env = { ARTSEAL_MASTER_KEY: masterKey, ARTSEAL_DATA_DIR: dataDir };
  const keyRing = createKeyRing(parseMasterKeys(masterKey));
  const urlOf = (webhook: { readonly webhookId: string; readonly sealedUrl: Uint8Array }) =>
    openUrl(keyRing, { ...webhook, origin: '' });
  return { service, gallery, headers, webhookId, dataDir, env, urlOf, file: join(dataDir, 'artseal.db') };
}

/** The same as a version left it that stored URLs as plain text, with the answer of the call that added the endpoint. */
async function fromBefore(t: TestContext) {
  const all = await withEndpoint(t);
  const { service, webhookId, file, urlOf } = all;
  await service.close();
  takeBack(file, plainSchema, urlOf);
  const raw = new Sqlite(file);
  const outcome = serialize({ kind: 'DONE', result: { webhookId, url, disabledWhy: null }, isReplay: false });
  raw.prepare('UPDATE idempotency_key SET outcome = ?').run(outcome);
  raw.pragma('journal_mode = WAL');
  raw.close();
  return all;
}

test('the URL of a webhook is in no file as plain text, and its owner reads it whole', async (t) => {
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

test('operators are shown the origin alone of the URL of a webhook', async (t) => {
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

test('URLs of before are sealed by the first process that has the keys, and no page keeps them', async (t) => {
  const { gallery, headers, webhookId, dataDir, env, file } = await fromBefore(t);
  assert.deepEqual(filesWithUrl(dataDir), ['artseal.db']);
  const service = await serveWatched(t, env);
  assert.equal((await send(service.publicUrl, gallery, { target: `${target}/${webhookId}` })).json.url, url);
  // What the call was answered had the URL: it is not answered again, and adds no second endpoint.
  const again = await send(service.publicUrl, gallery, { target, body: JSON.stringify({ url }), headers });
  assert.equal(again.json.code, 'IDEMPOTENCY_KEY_REUSED');
  await service.stop();
  // The copy that the upgrade made is as before: it is the way back.
  const copy = copyBefore(file, plainSchema);
  assert.deepEqual(
    filesWithUrl(dataDir).map((name) => join(dataDir, name)),
    [copy],
  );
});

test('URLs are not sealed under a master key that is not that of the database', async (t) => {
  const { dataDir, env } = await fromBefore(t);
  const wrong = { ...env, ARTSEAL_MASTER_KEY: newMasterKeyText().trim() };
  await assert.rejects(openRegistry(readConfig(wrong), 'EXISTING'), MasterKeyError);
  const registry = await openRegistry(readConfig(env), 'EXISTING');
  await registry.store.close();
  assert.equal((await runHere(['webhooks', 'list'], { ...env, ARTSEAL_DATA_DIR: dataDir })).code, 0);
});

test('where sealing was cut off before the file was rewritten, the next process rewrites it', async (t) => {
  const { dataDir, env, file } = await fromBefore(t);
  const registry = await openRegistry(readConfig(env), 'EXISTING');
  await registry.store.close();
  const raw = new Sqlite(file);
  // As a page that is not in use.
  raw.exec('CREATE TABLE unused (x)');
  raw.prepare('INSERT INTO unused VALUES (?)').run(`${url} `.repeat(200));
  raw.exec('DROP TABLE unused; UPDATE deployment SET plain_urls = 1');
  raw.close();
  assert.ok(filesWithUrl(dataDir).includes('artseal.db'));
  assert.equal((await runHere(['webhooks', 'list'], env)).code, 0);
  assert.ok(!filesWithUrl(dataDir).includes('artseal.db'));
});

test('going back stores the URL as plain text again, which needs the master key', async (t) => {
  const { dataDir, env, file, urlOf } = await fromBefore(t);
  assert.equal((await runHere(['webhooks', 'list'], env)).code, 0);
  const wrong = { ...env, ARTSEAL_MASTER_KEY: newMasterKeyText().trim() };
  const refused = await runHere(['upgrade', '--back'], wrong);
  assert.equal(refused.code, 1);
  assert.match(refused.errors.join(), /secret of wh_[0-9a-f]+\/url/);
  assert.equal(goBack(dataDir, urlOf).schema, plainSchema);
  const raw = new Sqlite(file, { readonly: true });
  t.after(() => raw.close());
  assert.equal(raw.prepare('SELECT url FROM webhook').pluck().get(), url);
});
