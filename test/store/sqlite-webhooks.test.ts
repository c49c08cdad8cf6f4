import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { perform } from '../../src/store/store.ts';
import { plansOf } from '../support/statement.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, addWebhook, fileOne, noon, sandbox } from './promises/fixtures.ts';

test('sending and sending again read a delivery by its key, or those that are open by their index', async (t) => {
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  const raw = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  t.after(async () => {
    raw.close();
    await store.close();
  });
  const gallery = await addPlatform(store, 'gallery');
  const { id, webhookId } = await addWebhook(store, gallery);
  await fileOne(store, gallery);
  const all = await plansOf(t, raw, async () => {
    const work = { kind: 'TakeWork', id, nowMs: noon.atMs, limit: 9, underWay: [] } as const;
    await perform(store, work);
    await perform(store, {
      ...{ kind: 'Redeliver', webhookId, owner: undefined, nowMs: noon.atMs },
      which: { sinceMs: noon.atMs },
    });
    await perform(store, work);
  });
  const plans = all.filter(({ detail }) => detail.includes('webhook_delivery'));
  assert.ok(plans.length >= 3, JSON.stringify(plans));
  for (const { source, detail } of plans)
    assert.match(
      detail,
      /webhook_delivery USING (PRIMARY KEY \(webhook=\? AND sequence=\?\)|(COVERING )?INDEX webhook_delivery_)/,
      source,
    );
});
