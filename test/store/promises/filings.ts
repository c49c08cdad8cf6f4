import assert from 'node:assert/strict';
import { anyFiling, noon, painting, refused, time, toFile } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

const numbers = (first: number, count: number) =>
  Array.from({ length: count }, (_, place) => `AS-2026-${String(first + place).padStart(6, '0')}`);

/** Filings, their numbers and their provenance. */
export function filingPromises({ test }: StoreTests): void {
  test('concurrent filings are numbered from 000001 in the order of their calls', async (store) => {
    const filed = await Promise.all(numbers(1, 50).map(() => store.perform(toFile(store.gallery))));
    assert.deepEqual(
      filed.map(({ filingNo }) => filingNo),
      numbers(1, 50),
    );
  });

  test('each year has its own numbers, by the year of the timestamp', async (store) => {
    const by = store.gallery;
    assert.equal(await store.fileOne(by, time('2026-12-31T23:59:59+08:00')), 'AS-2026-000001');
    // Both are still 2026 in UTC.
    assert.equal(await store.fileOne(by, time('2027-01-01T00:00:00+08:00')), 'AS-2027-000001');
    assert.equal(await store.fileOne(by, time('2027-01-01T00:00:01+08:00')), 'AS-2027-000002');
    assert.equal(await store.fileOne(by, time('2026-12-31T23:59:59+00:00')), 'AS-2026-000002');
  });

  test('a filing has the year of the record that dates it', async (store) => {
    const by = store.gallery;
    const cap = { filings: 2, endsInS: 2 };
    const [newYear, before] = [time('2027-01-01T00:00:01+08:00'), time('2026-12-31T23:59:58+08:00')];
    assert.equal(await store.fileOne(by, newYear), 'AS-2027-000001');
    const file = () => store.perform({ ...toFile(by, before), cap });
    const { filingNo, timestamp } = await file();
    assert.deepEqual([filingNo, timestamp], ['AS-2027-000002', newYear.timestamp]);
    await refused(file(), 'FILING_CAP_REACHED');
  });

  test('a filing is found exactly as sent and returned', async (store) => {
    const by = store.gallery;
    const artwork = {
      author: ' \u00e9 is not e\u0301 ',
      era: '\u{1F58C} "近现代" \\',
      size: "68×136 cm'; DROP TABLE filing;--",
      material: '\u2028 \ufeff',
      condition: 'x'.repeat(2000),
      price: BigInt(Number.MAX_SAFE_INTEGER),
    };
    const filed = await store.perform({ kind: 'FileArtwork', artwork, at: noon, by });
    const { timestamp } = noon;
    const { filingNo, hash } = filed;
    assert.deepEqual(filed, { filingNo, hash, timestamp });
    const whole = { ...artwork, ...filed, caller: 'gallery', attachments: [] };
    assert.deepEqual(await store.findFiling(filingNo), whole);
    const free = await store.perform({
      kind: 'FileArtwork',
      artwork: { ...artwork, price: 0n },
      at: noon,
      by,
    });
    assert.equal((await store.findFiling(free.filingNo))?.price, 0n);
  });

  test('an owner finds only its own filings', async (store) => {
    const other = await store.addPlatform('auction house');
    const filingNo = await store.fileOne(store.gallery);
    assert.equal((await store.findFiling(filingNo, store.gallery.callerId))?.filingNo, filingNo);
    assert.equal((await store.findFiling(filingNo))?.caller, 'gallery');
    assert.equal(await store.findFiling(filingNo, other.callerId), undefined);
    assert.equal(await store.findFiling('AS-2026-000002'), undefined);
    assert.equal(await store.findFiling(''), undefined);
  });

  test('filings above the cap of their year are rejected, also concurrent ones', async (store) => {
    const by = store.gallery;
    const other = await store.addPlatform('museum');
    const cap = { filings: 5, endsInS: 77 };
    const counted = (year: number, { callerId } = by) =>
      store.perform({ kind: 'CountFilings', callerId, year });
    const file = () => store.perform({ ...toFile(by), cap });
    const filed = await Promise.allSettled([...Array.from({ length: 8 }, file), store.fileOne(other)]);
    assert.equal(filed.filter(({ status }) => status === 'fulfilled').length, 6);
    await assert.rejects(file(), { reason: 'FILING_CAP_REACHED', hints: { retryAfterS: 77 } });
    assert.deepEqual([await counted(2026), await counted(2026, other), await counted(2027)], [5, 1, 0]);
    // What is refused takes no number.
    assert.equal(await store.fileOne(other), 'AS-2026-000007');
    const newYear = time('2027-01-01T00:00:00+00:00');
    assert.equal((await store.perform({ ...toFile(by), at: newYear, cap })).filingNo, 'AS-2027-000001');
    assert.deepEqual([await counted(2026), await counted(2027)], [5, 1]);
    const [raised, none] = [{ ...cap, filings: 6 }, undefined];
    await store.acceptClock(noon);
    await store.perform({ ...toFile(by), cap: raised });
    await refused(store.perform({ ...toFile(by), cap: raised }), 'FILING_CAP_REACHED');
    await store.perform({ ...toFile(by), cap: none });
    assert.equal(await counted(2026), 7);
  });

  test('a filing between two pages does not move the second one', async (store) => {
    for (let count = 0; count < 4; count += 1) await store.perform(toFile(store.gallery));
    const list = (from?: number) =>
      store.perform({ kind: 'ListFilings', filter: anyFiling, page: { from, size: 2 } });
    const first = await list();
    await store.perform(toFile(store.gallery));
    const second = await list(first.next);
    assert.deepEqual(
      [...first.items, ...second.items].map(({ filingNo }) => filingNo.slice(-1)),
      ['4', '3', '2', '1'],
    );
    assert.equal(second.next, undefined);
  });

  test('callers list their filings by number, even if the clock was set back across a new year', async (store) => {
    const names = Array.from({ length: 7 }, (_, place) => `gallery ${place}`);
    const callers = await Promise.all(names.map((name) => store.addPlatform(name)));
    const numbers = new Map(callers.map(({ callerId }): [number, string[]] => [callerId, []]));
    const instants = ['2027-12-31', '2028-01-01', '2027-12-31', '2026-06-01', '2028-01-01'];
    for (const day of instants) {
      const at = time(`${day}T12:00:00+08:00`);
      await store.acceptClock(at);
      // Some file often, some once a day, in turns; the last one files in a single year.
      const turns = [...callers, ...callers.slice(0, 3), ...callers.slice(2, 5), ...callers.slice(0, 2)];
      const filing = day === '2028-01-01' ? turns : turns.filter((by) => by !== callers.at(-1));
      const filed = filing.map(async (by) => numbers.get(by.callerId)?.push(await store.fileOne(by, at)));
      await Promise.all(filed);
    }
    const years = [2026, 2027, 2028, 2029];
    const all = [undefined, [...numbers.values()].flat()] as const;
    for (const [owner, own] of [...numbers, all]) {
      const newestFirst = own.toSorted().reverse();
      // The filings of all callers are in the order of their numbers only within a year.
      for (const year of owner === undefined ? years : [undefined, ...years]) {
        const expected = newestFirst.filter((number) => number.startsWith(`AS-${year ?? ''}`));
        const pages = await store.filingPages({ owner, year }, 3);
        assert.deepEqual(pages.flat(), expected, `${owner} ${year}`);
        assert.equal(pages.length, Math.max(1, Math.ceil(expected.length / 3)));
      }
    }
  });

  test('a filing has a SUBMITTED record with the date in the business time zone', async (store) => {
    const filingNo = await store.fileOne(store.gallery, time('2026-11-22T00:15:00+08:00'));
    assert.deepEqual(await store.findProvenance(filingNo), {
      filingNo,
      author: painting.author,
      records: [{ event: 'SUBMITTED', at: '2026-11-22' }],
    });
    assert.equal(await store.findProvenance('AS-2026-999999'), undefined);
  });

  test('provenance lists the records, oldest first, with the dates in the business time zone', async (store) => {
    const filingNo = await store.fileOne(store.gallery);
    for (const day of ['2026-11-22', '2026-11-22', '2026-12-01']) {
      const at = time(`${day}T00:30:00+08:00`);
      const { escrowId } = await store.frozen(store.gallery, filingNo);
      await store.resolved(store.gallery, escrowId, 'RELEASE', at);
    }
    const provenance = await store.findProvenance(filingNo);
    assert.deepEqual(provenance?.records, [
      { event: 'SUBMITTED', at: '2026-11-21' },
      { event: 'TRANSFER', at: '2026-11-22' },
      { event: 'TRANSFER', at: '2026-11-22' },
      { event: 'TRANSFER', at: '2026-12-01' },
    ]);
  });
}
