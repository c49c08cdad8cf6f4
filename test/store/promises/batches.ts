import assert from 'node:assert/strict';
import { ApiError } from '../../../src/domain/reason.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import type { Admission, Command } from '../../../src/store/store.ts';
import {
  anyFiling,
  endedAs,
  firstPage,
  nowS,
  ofNobody,
  painting,
  settlementOf,
  toFile,
  toResolve,
  underKey,
} from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

/** More requests than an engine executes in one transaction when it is idle, so that further ones are read ahead. */
const many = 120;

const numbersTo = (count: number): number[] => Array.from({ length: count }, (_, nth) => nth + 1);
const filingNo = (nth: number): string => `AS-2026-${String(nth).padStart(6, '0')}`;

/** The admission of a call of caller 1 with a nonce. */
const counted = (nonce: string): Admission => ({
  nowS,
  nonce: { keyId: 1, nonce },
  quota: { callerId: 1, month: '2026-11', limit: undefined, take: true },
});

/** Executes a call, in a word: its filing number or why it was not admitted, and how often the caller has called. */
async function called(store: TestStore, admission: Admission, effect?: Command<'FileArtwork'>) {
  const { outcome, calls } = await store.execute({ admission, effect });
  if (outcome.kind === 'NOT_ADMITTED') return [outcome.why, calls];
  return [outcome.kind === 'DONE' ? outcome.result?.filingNo : outcome.apiError.reason, calls];
}

const countOf = (store: TestStore, { callerId }: CallerRef) =>
  store.perform({ kind: 'CountFilings', callerId, year: 2026 });

/** Requests that are submitted together: an engine executes them in few transactions, and may read for some ahead. */
export function batchPromises({ test }: StoreTests): void {
  test('a read sees the filings before it and none after it, however many are submitted together', async (store) => {
    const by = store.gallery;
    const seen = await Promise.all(
      numbersTo(many).map(async (nth) =>
        Promise.all([
          ...[store.findFiling(filingNo(nth)), countOf(store, by), store.fileOne(by)],
          ...[store.findFiling(filingNo(nth)), store.findProvenance(filingNo(nth)), countOf(store, by)],
        ]),
      ),
    );
    for (const [index, [before, countBefore, filed, after, provenance, countAfter]] of seen.entries()) {
      assert.deepEqual([before, countBefore, filed], [undefined, index, filingNo(index + 1)]);
      assert.partialDeepStrictEqual([after, provenance], [{ filingNo: filed }, { filingNo: filed }]);
      assert.equal(countAfter, index + 1);
    }
  });

  test('a read sees the transfer of a filing before it, and none after it', async (store) => {
    const { escrowId, filingNo: sold } = await store.frozen(store.gallery);
    await store.perform(toResolve(store.gallery, 'RELEASE', escrowId));
    const found = await store.caseOf(escrowId);
    const update = settlementOf(found, { to: 'RELEASED', ended: endedAs('CONFIRMED', found) });
    const [before, updated, after] = await Promise.all([
      ...[store.transfersOf(sold), store.updateOrder(update), store.transfersOf(sold)],
    ]);
    assert.deepEqual([before, after], [0, 1]);
    assert.partialDeepStrictEqual(updated, { order: { state: 'RELEASED' } });
  });

  test('a replay gets the result that a further command of its call has stored just before', async (store) => {
    const { callerId } = store.gallery;
    const first = underKey(callerId, 'k', { kind: 'HasCallers' });
    const continues = first.admission?.idempotency;
    const effect = { kind: 'CountFilings', callerId, year: 2026 } as const;
    const [, , again] = await Promise.all([
      ...[store.execute(first), store.execute({ continues, effect }), store.execute(first)],
    ]);
    assert.deepEqual(again?.outcome, { kind: 'DONE', result: 0, isReplay: true });
  });

  test('a request that fails leaves the numbers, counts, nonces and events of those around it whole', async (store) => {
    const by = store.gallery;
    const cap = { filings: 2 * many, endsInS: 1 };
    const file = (nth: number) =>
      called(store, counted(`n${nth}`), nth % 25 === 0 ? ofNobody : { ...toFile(by), cap });
    const results = await Promise.allSettled(numbersTo(many).map(file));
    const failed = results.filter(({ status }) => status === 'rejected').length;
    assert.equal(failed, Math.floor(many / 25));
    const filed = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    assert.deepEqual(
      filed.map(([number]) => number),
      numbersTo(many - failed).map(filingNo),
    );
    for (const result of results)
      if (result.status === 'rejected') assert.ok(!(result.reason instanceof ApiError));
    assert.equal(await store.perform({ kind: 'CountCalls', callerId: 1, month: '2026-11' }), many);
    assert.equal(await countOf(store, by), many - failed);
    const again = await Promise.all(numbersTo(many).map((nth) => called(store, counted(`n${nth}`))));
    assert.deepEqual(
      again,
      again.map(() => ['NONCE_REUSED', many]),
    );
    assert.deepEqual(await called(store, counted('next'), toFile(by)), [
      filingNo(many - failed + 1),
      many + 1,
    ]);
    assert.equal((await store.metrics()).nonces, many + 1);
    const { events } = await store.perform({ kind: 'ReadEvents', callerId: 1, after: many - failed - 1 });
    assert.deepEqual(
      events.map(({ sequence, filingNo }) => [sequence, filingNo]),
      [many - failed, many - failed + 1].map((nth) => [nth, filingNo(nth)]),
    );
  });

  test('calls after long replies are admitted once, though an engine executes them later', async (store) => {
    const by = store.gallery;
    const artwork = { ...painting, condition: 'x'.repeat(2_000) };
    await Promise.all(numbersTo(60).map(() => store.perform({ ...toFile(by), artwork })));
    const list = () => store.perform({ kind: 'ListFilings', filter: anyFiling, page: firstPage(60) });
    // All are in one batch, of which a part is executed: a longer page would be a batch of its own.
    const calls = numbersTo(10).map((nth) => called(store, counted(`n${nth}`)));
    const lists = numbersTo(5).map(list);
    calls.push(...numbersTo(10).map((nth) => called(store, counted(`n${nth + 5}`))));
    for (const { items } of await Promise.all(lists)) assert.equal(items.length, 60);
    const words = (await Promise.all(calls)).map(([word]) => word);
    const reused = numbersTo(20).map((nth) => (nth > 10 && nth <= 15 ? 'NONCE_REUSED' : undefined));
    assert.deepEqual(words, reused);
    assert.equal((await store.metrics()).nonces, 15);
  });
}
