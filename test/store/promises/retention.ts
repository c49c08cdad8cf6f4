import assert from 'node:assert/strict';
import { madeUpOriginStart } from '../../../src/domain/leaf.ts';
import { ApiError, type Reason } from '../../../src/domain/reason.ts';
import { tester } from '../../support/audit-log.ts';
import { firstPage, newLogKey, time, toFile, toOpen, underKey, yearsAgo } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const nowS = () => Math.floor(Date.now() / 1000);
const whole = firstPage();

async function expiredIn(store: TestStore, atS = nowS()): Promise<string[]> {
  const { items } = await store.perform({ kind: 'ListExpired', nowS: atS, page: whole });
  return items.map(({ filingNo }) => filingNo);
}

/** Erases filings. Returns the numbers of those that were erased. */
async function erase(store: TestStore, filingNos: readonly string[], atS = nowS()): Promise<string[]> {
  const erased = await store.perform({ kind: 'EraseFilings', by: { ...tester, atS }, filingNos });
  return erased.map(({ filingNo }) => filingNo);
}

async function saysErased(work: Promise<unknown>): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.reason, 'FILING_NOT_FOUND' satisfies Reason);
    assert.match(error.message, /was erased: its retention of 5 years is over/);
    return true;
  });
}

/** Erasing what was kept long enough. */
export function retentionPromises({ test }: StoreTests): void {
  test('a filing can be erased if all records are over five years old and no order is open', async (store) => {
    const by = store.gallery;
    const [long, old, young] = [yearsAgo(7, 0), yearsAgo(5, -2), yearsAgo(5, 2)];
    const [plain, sold, soldLately, beingSold] = [
      await store.fileOne(by, long),
      await store.fileOne(by, long),
      await store.fileOne(by, long),
      await store.fileOne(by, long),
    ];
    const orders: string[] = [];
    for (const filingNo of [sold, soldLately, beingSold]) {
      const { order } = await store.perform(toOpen(by, filingNo, { at: old }));
      await store.settled(order.escrowId, { to: 'FROZEN' }, old);
      orders.push(order.escrowId);
    }
    await store.resolved(by, orders[0] ?? '', 'RELEASE', old);
    await store.resolved(by, orders[1] ?? '', 'RELEASE', young);
    await store.acceptClock(young);
    const almost = await store.fileOne(by, young);
    await store.acceptClock(yearsAgo(0, 0));
    const { beforeS, ...expired } = await store.perform({ kind: 'ListExpired', nowS: nowS(), page: whole });
    assert.deepEqual(expired, {
      items: [
        { filingNo: plain, records: 1 },
        { filingNo: sold, records: 2 },
      ],
      next: undefined,
    });
    assert.ok(Math.floor(old.atMs / 1000) < beforeS && beforeS < Math.floor(young.atMs / 1000));
    const all = [plain, sold, soldLately, beingSold, almost, 'AS-1999-000001'];
    assert.deepEqual(await erase(store, all), [plain, sold]);
    assert.deepEqual(await erase(store, all), []);
    assert.deepEqual(await expiredIn(store), []);
    for (const filingNo of [soldLately, beingSold, almost])
      assert.ok(await store.findFiling(filingNo), filingNo);
    // Given back at last, its record of five years ago is all that there is.
    await store.resolved(by, orders[2] ?? '', 'REFUND');
    assert.deepEqual(await expiredIn(store), [beingSold]);
  });

  test('the retention ends only by the clock and by the time of the newest filing or that an operator accepted', async (store) => {
    const [old, young] = [
      await store.fileOne(store.gallery, yearsAgo(5, -2)),
      await store.fileOne(store.gallery, yearsAgo(5, 2)),
    ];
    assert.deepEqual(await erase(store, [old, young]), []);
    await store.acceptClock(time('2040-01-01T00:00:00+00:00'));
    const [early, late] = [nowS() - 10 * 86_400, nowS() + 10 * 86_400];
    assert.deepEqual(await expiredIn(store, early), []);
    assert.deepEqual(await erase(store, [old, young], early), []);
    assert.deepEqual(await expiredIn(store, late), [old]);
    assert.deepEqual(await erase(store, [old, young], late), [old]);
  });

  test('the advanced clock of a sandbox does not end retention if its log has a name of its own', async (store) => {
    const filingNo = await store.fileOne(store.gallery, yearsAgo(0, 0));
    await store.perform({ kind: 'NameLog', origin: 'log.example', key: newLogKey() });
    await store.perform({ kind: 'AdvanceClock', by: { ...tester, atS: nowS() }, seconds: 1_829 * 86_400 });
    assert.deepEqual(await expiredIn(store), []);
    assert.deepEqual(await erase(store, [filingNo]), []);
  });

  test('the advanced clock of a sandbox ends retention, and the log says by how much it was ahead', async (store) => {
    const by = { ...tester, atS: nowS() };
    const filingNo = await store.fileOne(store.gallery, yearsAgo(0, 0));
    await store.perform({ kind: 'NameLog', origin: `${madeUpOriginStart}0123`, key: newLogKey() });
    const seconds = 1_824 * 86_400;
    assert.equal(await store.perform({ kind: 'AdvanceClock', by, seconds }), seconds);
    assert.deepEqual(await erase(store, [filingNo]), []);
    const ahead = await store.perform({ kind: 'AdvanceClock', by, seconds: 5 * 86_400 });
    assert.equal(ahead, 1_829 * 86_400);
    assert.deepEqual(await expiredIn(store), [filingNo]);
    assert.deepEqual(await erase(store, [filingNo]), [filingNo]);
    await saysErased(store.findFiling(filingNo));
    const last = JSON.parse((await store.allLeaves()).at(-1) ?? '');
    assert.deepEqual([last.kind, last.detail.ahead, last.detail.leaves], ['RECORDS_ERASED', ahead, '1']);
    assert.ok(Math.abs(last.time - nowS()) < 600);
  });

  test('a filing of the 29th of February is not erased before the 2nd of March', async (store) => {
    const [last, first] = [
      await store.fileOne(store.gallery, time('2019-02-27T06:00:00+00:00')),
      await store.fileOne(store.gallery, time('2019-03-01T06:00:00+00:00')),
    ];
    await store.acceptClock(yearsAgo(0, 0));
    const expiredAt = (instant: string) => expiredIn(store, time(instant).atMs / 1_000);
    assert.deepEqual(await expiredAt('2024-02-29T12:00:00+00:00'), [last]);
    assert.deepEqual(await expiredAt('2024-03-01T12:00:00+00:00'), [last]);
    assert.deepEqual(await expiredAt('2024-03-02T12:00:00+00:00'), [last, first]);
  });

  test('an erasure deletes the stored result of the Idempotency-Key, too', async (store) => {
    const at = yearsAgo(6, 0);
    const filedS = Math.floor(at.atMs / 1000);
    const file = () =>
      store.execute(underKey(store.gallery.callerId, 'key-1', toFile(store.gallery, at), { nowS: filedS }));
    const { outcome } = await file();
    assert.ok(outcome.kind === 'DONE' && outcome.result);
    await store.acceptClock(yearsAgo(0, 0));
    assert.deepEqual(await erase(store, [outcome.result.filingNo]), [outcome.result.filingNo]);
    await store.acceptClock(at);
    const again = await file();
    assert.ok(again.outcome.kind === 'DONE' && !again.outcome.isReplay);
  });

  test('an erasure in a sandbox whose clock is ahead keeps the results of keys that may be used again', async (store) => {
    const at = yearsAgo(0, 0);
    const file = () =>
      store.execute(underKey(store.gallery.callerId, 'key-1', toFile(store.gallery, at), { nowS: nowS() }));
    await file();
    await store.perform({ kind: 'AdvanceClock', by: { ...tester, atS: nowS() }, seconds: 7 * 86_400 });
    assert.deepEqual(await erase(store, []), []);
    const { outcome } = await file();
    assert.ok(outcome.kind === 'DONE' && outcome.isReplay);
  });

  test('an erased filing is reported as erased and is in no list', async (store) => {
    const by = store.gallery;
    const other = await store.addPlatform('auction house');
    const at = yearsAgo(6, 0);
    const numbers: string[] = [];
    for (let nth = 0; nth < 7; nth += 1) numbers.push(await store.fileOne(by, at));
    await store.acceptClock(yearsAgo(0, 0));
    const latest = await store.fileOne(by, yearsAgo(0, 0));
    const gone = numbers.filter((_, place) => [0, 1, 3, 6].includes(place));
    assert.deepEqual(await erase(store, gone), gone);
    const [filingNo = ''] = gone;
    await saysErased(store.findFiling(filingNo, by.callerId));
    await saysErased(store.findProvenance(filingNo));
    await saysErased(store.perform(toOpen(by, filingNo)));
    const strange = { kind: 'GetFiling', filingNo, owner: other.callerId } as const;
    assert.equal(await store.perform(strange), undefined);
    const record = { kind: 'FindRecord', filingNo, sequence: 1, owner: by.callerId } as const;
    assert.deepEqual(await store.perform(record), { content: undefined, leafIndex: 1 });
    const kept = [latest, ...numbers.filter((number) => !gone.includes(number)).reverse()];
    for (const owner of [undefined, by.callerId])
      for (const size of [1, 2, 3, 10]) {
        const pages = await store.filingPages({ owner }, size);
        assert.deepEqual(pages.flat(), kept);
        assert.equal(pages.length, Math.ceil(kept.length / size));
      }
  });

  test('an erasure keeps numbers, leaves and proofs, and a leaf lists the erased records', async (store) => {
    const at = yearsAgo(6, 0);
    const [first, second] = [await store.fileOne(store.gallery, at), await store.fileOne(store.gallery, at)];
    await store.acceptClock(yearsAgo(0, 0));
    const before = await store.allLeaves();
    const proven = { kind: 'ProveInclusion', index: 1, size: before.length } as const;
    const proof = await store.perform(proven);
    await erase(store, [first, second]);
    const leaves = await store.allLeaves();
    assert.deepEqual(leaves.slice(0, before.length), before);
    const [added, ...more] = leaves.slice(before.length).map((leaf) => JSON.parse(leaf));
    assert.deepEqual(more, []);
    assert.partialDeepStrictEqual(added, {
      kind: 'RECORDS_ERASED',
      number: 'LOG',
      detail: { records: 2, leaves: '1-2' },
    });
    assert.ok(added.detail.before > at.atMs / 1000 && added.detail.before < nowS());
    assert.deepEqual(await store.perform(proven), proof);
    await store.acceptClock(at);
    assert.equal(await store.fileOne(store.gallery, at), first.replace('-000001', '-000003'));
    await erase(store, [first]);
    assert.equal((await store.allLeaves()).length, leaves.length + 2);
  });

  test('the time of its leaf decides when a record is erased', async (store) => {
    const filingNo = await store.fileOne(store.gallery, yearsAgo(7, 0));
    const { order } = await store.perform(toOpen(store.gallery, filingNo, { at: yearsAgo(7, 0) }));
    await store.settled(order.escrowId, { to: 'FROZEN' }, yearsAgo(7, 0));
    await store.acceptClock(yearsAgo(5, 2));
    await store.resolved(store.gallery, order.escrowId, 'RELEASE', yearsAgo(6, 0));
    await store.acceptClock(yearsAgo(0, 0));
    assert.deepEqual(await erase(store, [filingNo]), []);
  });
}
