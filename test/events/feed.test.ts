import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createFeed, wakeEveryMs } from '../../src/events/feed.ts';
import { createPolls, pollsMax } from '../../src/events/polls.ts';
import type { EventListener } from '../../src/store/store.ts';
import { createManualClock } from '../support/clock.ts';

/** A feed whose news the test tells. */
function openFeed() {
  const clock = createManualClock();
  let tell: EventListener = () => assert.fail('Nobody listens.');
  let isListening = false;
  const onEvents = (listener: EventListener) => {
    tell = listener;
    isListening = true;
    return () => {
      isListening = false;
    };
  };
  const feed = createFeed({ onEvents }, clock);
  return {
    clock,
    feed,
    tell: (...ids: number[]) => tell(ids),
    tellAnybodys: () => tell(undefined),
    isListening: () => isListening,
  };
}

/** Whether a promise is settled once all that is due has happened. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => {
    settled = true;
  });
  await turn();
  return settled;
}

const never = new AbortController().signal;

test('whoever waits is woken by events of its caller, and of anybody', async () => {
  const { feed, clock, tell, tellAnybodys } = openFeed();
  const [one, all] = [feed.listen(1, never), feed.listen(undefined, never)];
  const waiting = one.news(60_000);
  const forAll = all.news(60_000);
  tell(2, 3);
  assert.deepEqual([await isSettled(waiting), await isSettled(forAll)], [false, true]);
  clock.advance(wakeEveryMs);
  tell(2, 1);
  assert.equal(await isSettled(waiting), true);
  clock.advance(wakeEveryMs);
  const again = one.news(60_000);
  tellAnybodys();
  assert.equal(await isSettled(again), true);
});

test('what comes while nobody waits is not missed, and is told once', async () => {
  const { feed, tell } = openFeed();
  const listener = feed.listen(1, never);
  tell(1);
  assert.equal(await isSettled(listener.news(60_000)), true);
  assert.equal(await isSettled(listener.news(60_000)), false);
});

test('however often events come, whoever waits is woken 20 times a second, and for the last of them as well', async () => {
  const { feed, clock, tell } = openFeed();
  const listener = feed.listen(1, never);
  let waiting = listener.news(60_000);
  let woken = 0;
  for (let ms = 0; ms < 1_000; ms += 1) {
    for (let event = 0; event < 4; event += 1) tell(1);
    if (await isSettled(waiting)) {
      woken += 1;
      waiting = listener.news(60_000);
    }
    clock.advance(1);
  }
  assert.equal(woken, 1_000 / wakeEveryMs);
  clock.advance(wakeEveryMs);
  assert.equal(await isSettled(waiting), true);
  clock.advance(wakeEveryMs);
  assert.equal(await isSettled(listener.news(60_000)), false);
});

test('waiting ends with its time', async () => {
  const { feed, clock } = openFeed();
  const waiting = feed.listen(1, never).news(15_000);
  clock.advance(14_999);
  assert.equal(await isSettled(waiting), false);
  clock.advance(1);
  assert.equal(await isSettled(waiting), true);
});

test('waiting ends when its signal is aborted, and there is none from then on', async () => {
  const { feed } = openFeed();
  const gone = new AbortController();
  const listener = feed.listen(1, gone.signal);
  const waiting = listener.news(60_000);
  assert.equal(await isSettled(waiting), false);
  gone.abort();
  assert.equal(await isSettled(waiting), true);
  assert.equal(await isSettled(listener.news(60_000)), true);
});

test('a feed that ends wakes all, has none wait, and hears no more of the store', async () => {
  const { feed, isListening } = openFeed();
  const waiting = [feed.listen(1, never), feed.listen(undefined, never)].map((each) => each.news(60_000));
  assert.deepEqual([feed.isEnded(), isListening()], [false, true]);
  feed.end();
  for (const each of waiting) assert.equal(await isSettled(each), true);
  assert.equal(await isSettled(feed.listen(2, never).news(60_000)), true);
  assert.deepEqual([feed.isEnded(), isListening()], [true, false]);
});

test('one that listens no more is not woken, and holds up nobody', async () => {
  const { feed, clock, tell } = openFeed();
  const listener = feed.listen(1, never);
  const waiting = listener.news(60_000);
  listener[Symbol.dispose]();
  tell(1);
  assert.equal(await isSettled(waiting), false);
  clock.advance(60_000);
  assert.equal(await isSettled(waiting), true);
});

test('of the calls of a caller that wait, the oldest is to end when there are too many', () => {
  const polls = createPolls();
  const own = Array.from({ length: pollsMax.ofCaller }, () => polls.begin(1));
  const others = Array.from({ length: pollsMax.ofCaller }, () => polls.begin(2));
  assert.ok([...own, ...others].every(({ signal }) => !signal.aborted));
  polls.begin(1);
  assert.deepEqual(
    own.map(({ signal }) => signal.aborted),
    [true, ...own.slice(1).map(() => false)],
  );
  own[1]?.[Symbol.dispose]();
  polls.begin(1);
  assert.equal(own[2]?.signal.aborted, false);
  polls.begin(1);
  assert.equal(own[2]?.signal.aborted, true);
  assert.ok(others.every(({ signal }) => !signal.aborted));
});

test('of all calls that wait, the oldest is to end when there are too many', () => {
  const polls = createPolls();
  const waiting = Array.from({ length: pollsMax.all }, (_, callerId) => polls.begin(callerId));
  assert.ok(waiting.every(({ signal }) => !signal.aborted));
  polls.begin(pollsMax.all);
  assert.deepEqual(
    waiting.filter(({ signal }) => signal.aborted),
    [waiting[0]],
  );
});
