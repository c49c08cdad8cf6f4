import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newMasterKeyText } from '../../src/keys/key-ring.ts';
import { runHere } from '../support/artseal.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';

test('if the master key is lost, secrets reissue gives webhooks a new secret, shown once', async (t) => {
  const service = await startService(t, { env: { ARTSEAL_MASTER_KEY: newMasterKeyText().trim() } });
  const gallery = await service.platform();
  const url = 'https://gallery.example/hooks?token=unspoken';
  const body = JSON.stringify({ url });
  const added = await send(service.publicUrl, gallery, { target: '/api/v1/webhooks', body });
  const { webhookId } = added.json.webhook;
  await service.close();

  const env = { ARTSEAL_MASTER_KEY: newMasterKeyText().trim(), ARTSEAL_DATA_DIR: service.dataDir };
  const { code, printed } = await runHere(['secrets', 'reissue', '--json'], env);
  assert.equal(code, 0);
  const lines = printed.map((line) => JSON.parse(line));
  const [rotated] = lines.filter((line) => line.webhookId !== undefined);
  assert.deepEqual([rotated?.webhookId, rotated?.caller], [webhookId, gallery.caller]);
  assert.equal(rotated?.lostUrl, 'https://gallery.example');

  const again = await startService(t, { dataDir: service.dataDir, env });
  const page = { from: undefined, size: 1 };
  const { items } = await again.execute({ kind: 'ListWebhooks', owner: undefined, page });
  const sealed = items[0]?.sealedSecret ?? assert.fail();
  assert.equal(again.keyRing.open(sealed, webhookId).export().toString(), rotated.secret);
  // The URL is lost as well: the owner sets it again.
  const target = `/api/v1/webhooks/${webhookId}`;
  const issued = lines.find(({ apiKey }) => apiKey !== undefined);
  const lost = (await send(again.publicUrl, issued, { target })).json;
  assert.deepEqual([lost.url, lost.status], ['https://gallery.example', 'DISABLED']);
  const mended = await send(again.publicUrl, issued, {
    ...{ method: 'PATCH', target, body: JSON.stringify({ url, status: 'ENABLED' }) },
  });
  assert.deepEqual([mended.json.url, mended.json.status], [url, 'ENABLED']);
  const entries = await again.execute({
    kind: 'ListAuditLog',
    sinceS: undefined,
    page: { from: undefined, size: 9 },
  });
  assert.ok(entries.items.some(({ action }) => action === 'webhook disable'));
  assert.ok(
    entries.items.some(({ action, subject }) => action === 'webhook rotate-secret' && subject === webhookId),
  );
  assert.ok(!JSON.stringify(entries).includes(rotated.secret));
  await again.close();
  assert.match((await runHere(['secrets', 'reissue'], env)).printed.join(), /every secret can be opened/);
});
