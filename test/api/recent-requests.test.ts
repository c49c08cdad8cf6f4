import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { RequestEvent } from '../../src/api/call-observer.ts';
import { createRecentRequests, recentRequestsMax } from '../../src/api/recent-requests.ts';
import { ApiError } from '../../src/domain/reason.ts';
import type { StoredKey } from '../../src/store/caller-commands.ts';
import { createManualClock } from '../support/clock.ts';

const everything = { isFailed: false };
const wholeList = { from: undefined, size: Number.MAX_SAFE_INTEGER };

/** Recent requests of a deployment in which the key `ak_NAME` belongs to the platform NAME, unless that is `nobody`. */
function open() {
  const findKey = (apiKey: string) => {
    const caller = apiKey.slice('ak_'.length);
    return caller === 'nobody' ? undefined : ({ caller } as StoredKey);
  };
  const requests = createRecentRequests({ findKey }, createManualClock());
  const add = (times: number, event: Partial<RequestEvent>) => {
    for (let nth = 0; nth < times; nth += 1)
      requests.add('public', { requestId: randomUUID(), ...event }, 200, 1);
  };
  const countOf = (caller: string | undefined) =>
    requests.list({ caller, isFailed: false }, wholeList).items.length;
  return { requests, add, countOf };
}

test('a flood of rejected calls drops no call of a platform', () => {
  const { requests, add, countOf } = open();
  add(100, { caller: 'quiet' });
  add(3, { claimedKey: 'ak_quiet' });
  const apiError = new ApiError('SIGNATURE_INVALID', 'x');
  for (const claimedKey of [undefined, 'ak_nobody', 'ak_loud']) add(50_000, { claimedKey, apiError });
  add(20_000, { caller: 'loud' });
  assert.equal(countOf('quiet'), 103);
  const all = requests.list(everything, wholeList).items.length;
  assert.ok(all <= recentRequestsMax.kept && all >= recentRequestsMax.left, `${all}`);
});

test('of two callers with many calls, the one with more loses its oldest calls first', () => {
  const { requests, add, countOf } = open();
  const { kept, left } = recentRequestsMax;
  add(6_000, { caller: 'one' });
  add(10, { caller: 'two' });
  add(kept - 6_010, { caller: 'three' });
  assert.deepEqual(['one', 'two', 'three'].map(countOf), [6_000, 10, kept - 6_010]);
  add(1, { caller: 'three' });
  const ofThree = kept - 6_009;
  assert.deepEqual(['one', 'two', 'three'].map(countOf), [left - 10 - ofThree, 10, ofThree]);
  const { items } = requests.list({ caller: 'one', isFailed: false }, wholeList);
  assert.deepEqual([items[0]?.nth, items.at(-1)?.nth], [6_000, 6_000 - items.length + 1]);
});

test('more callers than calls are kept within the bound', () => {
  const { requests, add } = open();
  for (let nth = 0; nth < 30_000; nth += 1) add(1, { caller: `caller-${nth}` });
  assert.ok(requests.list(everything, wholeList).items.length <= recentRequestsMax.kept);
});

test('a list is newest first, and its pages join without a gap while calls are added', () => {
  const { requests, add } = open();
  add(7, { caller: 'one' });
  add(2, { caller: 'two' });
  const first = requests.list(everything, { from: undefined, size: 4 });
  add(5, { caller: 'one' });
  const second = requests.list(everything, { from: first.next, size: 4 });
  const third = requests.list(everything, { from: second.next, size: 4 });
  const nths = [first, second, third].flatMap(({ items }) => items.map(({ nth }) => nth));
  assert.deepEqual(nths, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
  assert.equal(third.next, undefined);
});

test('only calls with an error are failed', () => {
  const { requests, add } = open();
  add(1, { caller: 'one' });
  add(1, { caller: 'one', apiError: new ApiError('FILING_NOT_FOUND', 'x') });
  const { items } = requests.list({ isFailed: true }, wholeList);
  assert.deepEqual(
    items.map(({ reason }) => reason),
    ['FILING_NOT_FOUND'],
  );
});
