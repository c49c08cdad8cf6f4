import assert from 'node:assert/strict';
import { writeTransfers } from '../support/transfers.ts';
import { sqliteInThisThread } from './engines.ts';
import { anyOrder, firstPage, refused } from './promises/fixtures.ts';
import { storeTests } from './promises/tests.ts';

storeTests(sqliteInThisThread).test(
  'a filing has at most 10,000 transfers, not counting refunds',
  async (before) => {
    const by = before.gallery;
    const [filingNo, other] = [await before.fileOne(by), await before.fileOne(by)];
    await before.close();
    await writeTransfers(before.dataDir, filingNo, 9_999);
    const store = await before.openAgain();
    const refunded = await store.frozen(by, filingNo);
    await store.resolved(by, refunded.escrowId, 'REFUND');
    const { escrowId } = await store.frozen(by, filingNo);
    await refused(store.opened(by, filingNo), 'ESCROW_ACTIVE');
    await store.resolved(by, escrowId, 'RELEASE');
    assert.equal(await store.transfersOf(filingNo), 10_000);
    await refused(store.opened(by, filingNo), 'TRANSFERS_EXHAUSTED');
    const page = firstPage();
    const { items } = await store.perform({ kind: 'ListEscrows', filter: anyOrder, page });
    assert.equal(items.length, 2, 'the rejected orders are not stored');
    await store.opened(by, other);
  },
);
