import assert from 'node:assert/strict';
import { plansOf } from '../support/statement.ts';
import { sqliteInThisThread } from './engines.ts';
import { noon } from './promises/fixtures.ts';
import { storeTests } from './promises/tests.ts';
import { openRaw } from './raw-database.ts';

const { test } = storeTests(sqliteInThisThread);

test('claims and redeliveries read deliveries by key or by index', async (store, t) => {
  const gallery = store.gallery;
  const raw = openRaw(t, store.dataDir, { readonly: true });
  const { id, webhookId } = await store.addWebhook(gallery);
  await store.fileOne(gallery);
  const all = await plansOf(t, raw, async () => {
    const work = { kind: 'ClaimDeliveries', id, nowMs: noon.atMs, limit: 9, underWay: [] } as const;
    await store.perform(work);
    await store.perform({
      ...{ kind: 'Redeliver', webhookId, owner: undefined, nowMs: noon.atMs },
      which: { sinceMs: noon.atMs },
    });
    await store.perform(work);
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

test('a page of deliveries of one status reads a bounded number of rows', async (store, t) => {
  const by = store.gallery;
  const { id, webhookId } = await store.addWebhook(by);
  const raw = openRaw(t, store.dataDir);
  raw.exec(`INSERT INTO webhook_delivery (webhook, sequence, type, resource, event_at_s, status, attempts)
    WITH RECURSIVE place(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 15000)
    SELECT ${id}, n, 'filing.created', 'AS-2026-' || n, 1, iif(n = 1, 'FAILED', 'DELIVERED'), 1 FROM place`);
  const list = (status: 'FAILED' | undefined, from?: number) =>
    store.perform({
      ...{ kind: 'ListDeliveries', webhookId, owner: undefined, status },
      page: { from, size: 10 },
    });
  const first = await list('FAILED');
  assert.deepEqual(first, { items: [], next: 5_001 });
  const second = await list('FAILED', first.next);
  assert.deepEqual([second.items.map(({ sequence }) => sequence), second.next], [[1], undefined]);
  assert.equal((await list(undefined)).next, 14_991);
});
