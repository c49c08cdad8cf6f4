import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createFeed, createPolls, pollsMax, wakeEveryMs } from '../../src/events/feed.ts';
import type { EventListener } from '../../src/store/store.ts';
import { createManualClock } from '../support/clock.ts';

/** A feed, and functions that report events to it. */
function openFeed() {
  const clock = createManualClock();
  const listeners = new Set<EventListener>();
  const onEvents = (listener: EventListener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const happen = (...ids: number[]) => {
    for (const report of listeners) report(ids);
  };
  return { clock, feed: createFeed({ onEvents }, clock), happen, isListening: () => listeners.size > 0 };
}

/** Whether a promise settles without time passing. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => {
    settled = true;
  });
  await turn();
  return settled;
}

const never = new AbortController().signal;

test('a listener is woken by events of its caller, or of all callers', async () => {
  const { feed, clock, happen } = openFeed();
  const [one, all] = [feed.listen(1, never), feed.listen(undefined, never)];
  const waiting = one.wait(60_000);
  const forAll = all.wait(60_000);
  happen(2, 3);
  assert.deepEqual([await isSettled(waiting), await isSettled(forAll)], [false, true]);
  clock.advance(wakeEveryMs);
  happen(2, 1);
  assert.equal(await isSettled(waiting), true);
});

test('an event while no listener waits ends the next wait, and only that', async () => {
  const { feed, happen } = openFeed();
  const listener = feed.listen(1, never);
  happen(1);
  assert.equal(await isSettled(listener.wait(60_000)), true);
  assert.equal(await isSettled(listener.wait(60_000)), false);
});

test('a listener is woken at most 20 times a second, and after the last event', async () => {
  const { feed, clock, happen } = openFeed();
  const listener = feed.listen(1, never);
  let waiting = listener.wait(60_000);
  let wakes = 0;
  for (let ms = 0; ms < 1_000; ms += 1) {
    for (let event = 0; event < 4; event += 1) happen(1);
    if (await isSettled(waiting)) {
      wakes += 1;
      waiting = listener.wait(60_000);
    }
    clock.advance(1);
  }
  assert.equal(wakes, 1_000 / wakeEveryMs);
  clock.advance(wakeEveryMs);
  assert.equal(await isSettled(waiting), true);
  clock.advance(wakeEveryMs);
  assert.equal(await isSettled(listener.wait(60_000)), false);
});

test('a wait ends after its timeout', async () => {
  const { feed, clock } = openFeed();
  const waiting = feed.listen(1, never).wait(15_000);
  clock.advance(14_999);
  assert.equal(await isSettled(waiting), false);
  clock.advance(1);
  assert.equal(await isSettled(waiting), true);
});

test('aborting the signal ends a wait, and all later ones', async () => {
  const { feed } = openFeed();
  const gone = new AbortController();
  const listener = feed.listen(1, gone.signal);
  const waiting = listener.wait(60_000);
  assert.equal(await isSettled(waiting), false);
  gone.abort();
  assert.equal(await isSettled(waiting), true);
  assert.equal(await isSettled(listener.wait(60_000)), true);
});

test('ending the feed ends all waits, all later ones, and its subscription to the store', async () => {
  const { feed, isListening } = openFeed();
  const waiting = [feed.listen(1, never), feed.listen(undefined, never)].map((each) => each.wait(60_000));
  assert.deepEqual([feed.isEnded(), isListening()], [false, true]);
  feed.end();
  for (const each of waiting) assert.equal(await isSettled(each), true);
  assert.equal(await isSettled(feed.listen(2, never).wait(60_000)), true);
  assert.deepEqual([feed.isEnded(), isListening()], [true, false]);
});

test('a disposed listener is not woken', async () => {
  const { feed, clock, happen } = openFeed();
  const listener = feed.listen(1, never);
  const waiting = listener.wait(60_000);
  listener[Symbol.dispose]();
  happen(1);
  assert.equal(await isSettled(waiting), false);
  clock.advance(60_000);
  assert.equal(await isSettled(waiting), true);
});

test('above the limit of a caller its oldest call ends', () => {
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

test('above the limit of all callers the oldest call ends', () => {
  const polls = createPolls();
  const waiting = Array.from({ length: pollsMax.all }, (_, callerId) => polls.begin(callerId));
  assert.ok(waiting.every(({ signal }) => !signal.aborted));
  polls.begin(pollsMax.all);
  assert.deepEqual(
    waiting.filter(({ signal }) => signal.aborted),
    [waiting[0]],
  );
});
