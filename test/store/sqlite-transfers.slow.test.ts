import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { writeTransfers } from '../support/transfers.ts';
import { sqliteInThisThread } from './engines.ts';
import {
  addPlatform,
  anyOrder,
  fileOne,
  firstPage,
  frozen,
  opened,
  openStore,
  refused,
  resolved,
  transfersOf,
} from './promises/fixtures.ts';

test('a filing has at most 10,000 transfers, not counting refunds', async (t) => {
  const dataDir = temporaryFolder(t);
  const before = await openStore(t, sqliteInThisThread, dataDir);
  const by = await addPlatform(before, 'gallery');
  const [filingNo, other] = [await fileOne(before, by), await fileOne(before, by)];
  await before.close();
  writeTransfers(dataDir, filingNo, 9_999);
  const store = await openStore(t, sqliteInThisThread, dataDir);
  const refunded = await frozen(store, by, filingNo);
  await resolved(store, by, refunded.escrowId, 'REFUND');
  const { escrowId } = await frozen(store, by, filingNo);
  await refused(opened(store, by, filingNo), 'ESCROW_ACTIVE');
  await resolved(store, by, escrowId, 'RELEASE');
  assert.equal(await transfersOf(store, filingNo), 10_000);
  await refused(opened(store, by, filingNo), 'TRANSFERS_EXHAUSTED');
  const page = firstPage();
  const { items } = await perform(store, { kind: 'ListEscrows', filter: anyOrder, page });
  assert.equal(items.length, 2, 'the rejected orders are not stored');
  await opened(store, by, other);
});
