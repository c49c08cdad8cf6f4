import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, type Reason } from '../../../src/domain/reason.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  acceptClock,
  addPlatform,
  allLeaves,
  fileOne,
  filingPages,
  findFiling,
  findProvenance,
  firstPage,
  openGallery,
  resolved,
  type StoreEngine,
  settled,
  time,
  toFile,
  toOpen,
  underKey,
  yearsAgo,
} from './fixtures.ts';

const nowS = () => Math.floor(Date.now() / 1000);
const whole = firstPage();

async function expiredIn(store: Store, atS = nowS()): Promise<string[]> {
  const { items } = await perform(store, { kind: 'ListExpired', nowS: atS, page: whole });
  return items.map(({ filingNo }) => filingNo);
}

/** Erases filings. Returns the numbers of those that were erased. */
async function erase(store: Store, filingNos: readonly string[], atS = nowS()): Promise<string[]> {
  const erased = await perform(store, { kind: 'EraseFilings', by: { ...tester, atS }, filingNos });
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
export function retentionPromises(engine: StoreEngine): void {
  test('a filing can be erased if all records are over five years old and no order is open', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [long, old, young] = [yearsAgo(7, 0), yearsAgo(5, -2), yearsAgo(5, 2)];
    const [plain, sold, soldLately, beingSold] = [
      await fileOne(store, by, long),
      await fileOne(store, by, long),
      await fileOne(store, by, long),
      await fileOne(store, by, long),
    ];
    const orders: string[] = [];
    for (const filingNo of [sold, soldLately, beingSold]) {
      const { order } = await perform(store, toOpen(by, filingNo, { at: old }));
      await settled(store, order.escrowId, { to: 'FROZEN' }, old);
      orders.push(order.escrowId);
    }
    await resolved(store, by, orders[0] ?? '', 'RELEASE', old);
    await resolved(store, by, orders[1] ?? '', 'RELEASE', young);
    await acceptClock(store, young);
    const almost = await fileOne(store, by, young);
    await acceptClock(store, yearsAgo(0, 0));
    const { beforeS, ...expired } = await perform(store, { kind: 'ListExpired', nowS: nowS(), page: whole });
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
      assert.ok(await findFiling(store, filingNo), filingNo);
    // Given back at last, its record of five years ago is all that there is.
    await resolved(store, by, orders[2] ?? '', 'REFUND');
    assert.deepEqual(await expiredIn(store), [beingSold]);
  });

  test('the retention ends only by both clocks', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [old, young] = [
      await fileOne(store, by, yearsAgo(5, -2)),
      await fileOne(store, by, yearsAgo(5, 2)),
    ];
    await acceptClock(store, time('2040-01-01T00:00:00+00:00'));
    const [early, late] = [nowS() - 10 * 86_400, nowS() + 10 * 86_400];
    assert.deepEqual(await expiredIn(store, early), []);
    assert.deepEqual(await erase(store, [old, young], early), []);
    assert.deepEqual(await expiredIn(store, late), [old]);
    assert.deepEqual(await erase(store, [old, young], late), [old]);
  });

  test('a filing of the 29th of February is not erased before the 2nd of March', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [last, first] = [
      await fileOne(store, by, time('2019-02-27T06:00:00+00:00')),
      await fileOne(store, by, time('2019-03-01T06:00:00+00:00')),
    ];
    await acceptClock(store, yearsAgo(0, 0));
    const expiredAt = (instant: string) => expiredIn(store, time(instant).atMs / 1_000);
    assert.deepEqual(await expiredAt('2024-02-29T12:00:00+00:00'), [last]);
    assert.deepEqual(await expiredAt('2024-03-01T12:00:00+00:00'), [last]);
    assert.deepEqual(await expiredAt('2024-03-02T12:00:00+00:00'), [last, first]);
  });

  test('a clock that is ahead of the newest filing ends no retention until an operator accepts it', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const old = await fileOne(store, by, yearsAgo(6, 0));
    assert.deepEqual(await expiredIn(store), []);
    assert.deepEqual(await erase(store, [old]), []);
    await acceptClock(store, yearsAgo(0, 0));
    assert.deepEqual(await expiredIn(store), [old]);
    assert.deepEqual(await erase(store, [old]), [old]);
  });

  test('an erasure deletes the stored result of the Idempotency-Key, too', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const at = yearsAgo(6, 0);
    const filedS = Math.floor(at.atMs / 1000);
    const file = () => store.execute(underKey(by.callerId, 'key-1', toFile(by, at), { nowS: filedS }));
    const { outcome } = await file();
    assert.ok(outcome.kind === 'DONE' && outcome.result);
    await acceptClock(store, yearsAgo(0, 0));
    assert.deepEqual(await erase(store, [outcome.result.filingNo]), [outcome.result.filingNo]);
    await acceptClock(store, at);
    const again = await file();
    assert.ok(again.outcome.kind === 'DONE' && !again.outcome.isReplay);
  });

  test('an erased filing is reported as erased and is in no list', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const at = yearsAgo(6, 0);
    const numbers: string[] = [];
    for (let nth = 0; nth < 7; nth += 1) numbers.push(await fileOne(store, by, at));
    await acceptClock(store, yearsAgo(0, 0));
    const latest = await fileOne(store, by, yearsAgo(0, 0));
    const gone = numbers.filter((_, place) => [0, 1, 3, 6].includes(place));
    assert.deepEqual(await erase(store, gone), gone);
    const [filingNo = ''] = gone;
    await saysErased(findFiling(store, filingNo, by.callerId));
    await saysErased(findProvenance(store, filingNo));
    await saysErased(perform(store, toOpen(by, filingNo)));
    const strange = { kind: 'GetFiling', filingNo, owner: other.callerId } as const;
    assert.equal(await perform(store, strange), undefined);
    const record = { kind: 'FindRecord', filingNo, sequence: 1, owner: by.callerId } as const;
    assert.deepEqual(await perform(store, record), { content: undefined, leafIndex: 1 });
    const kept = [latest, ...numbers.filter((number) => !gone.includes(number)).reverse()];
    for (const owner of [undefined, by.callerId])
      for (const size of [1, 2, 3, 10]) {
        const pages = await filingPages(store, { owner }, size);
        assert.deepEqual(pages.flat(), kept);
        assert.equal(pages.length, Math.ceil(kept.length / size));
      }
  });

  test('an erasure keeps numbers, leaves and proofs, and a leaf lists the erased records', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const at = yearsAgo(6, 0);
    const [first, second] = [await fileOne(store, by, at), await fileOne(store, by, at)];
    await acceptClock(store, yearsAgo(0, 0));
    const before = await allLeaves(store);
    const proven = { kind: 'ProveInclusion', index: 1, size: before.length } as const;
    const proof = await perform(store, proven);
    await erase(store, [first, second]);
    const leaves = await allLeaves(store);
    assert.deepEqual(leaves.slice(0, before.length), before);
    const [added, ...more] = leaves.slice(before.length).map((leaf) => JSON.parse(leaf));
    assert.deepEqual(more, []);
    assert.partialDeepStrictEqual(added, {
      kind: 'RECORDS_ERASED',
      number: 'LOG',
      detail: { records: 2, leaves: '1-2' },
    });
    assert.ok(added.detail.before > at.atMs / 1000 && added.detail.before < nowS());
    assert.deepEqual(await perform(store, proven), proof);
    await acceptClock(store, yearsAgo(6, 1));
    assert.equal(await fileOne(store, by, yearsAgo(6, 1)), first.replace('-000001', '-000003'));
    await erase(store, [first]);
    assert.equal((await allLeaves(store)).length, leaves.length + 2);
  });

  test('the time of its leaf decides when a record is erased', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filingNo = await fileOne(store, by, yearsAgo(7, 0));
    const { order } = await perform(store, toOpen(by, filingNo, { at: yearsAgo(7, 0) }));
    await settled(store, order.escrowId, { to: 'FROZEN' }, yearsAgo(7, 0));
    await acceptClock(store, yearsAgo(5, 2));
    await resolved(store, by, order.escrowId, 'RELEASE', yearsAgo(6, 0));
    await acceptClock(store, yearsAgo(0, 0));
    assert.deepEqual(await erase(store, [filingNo]), []);
  });
}
