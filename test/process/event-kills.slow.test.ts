import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { createRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';
import { type EventWithCaller, poll, type Reborn, readFeed, watchOver } from './event-consumers.ts';
import { happenedTo, lineOf, sell, statesAndMoney } from './event-load.ts';

/** A kill and the next start take up to two seconds, so this is the most, whatever CI sets. */
const killsMax = 50;
const kills = Math.min(killsMax, Number(process.env.ARTSEAL_TEST_KILLS ?? 6));

const platforms = 4;

/** Responses between a start and the next kill, at most: the share of a platform is far below its burst of 200. */
const answersMax = 80;

/** The longest wait, in milliseconds. */
const timeoutMs = 120_000;

/** A service that is killed and started again. `running` waits for the next one meanwhile. */
function createReborn(t: TestContext, env: Record<string, string>) {
  let next = Promise.withResolvers<WatchedService>();
  const reborn: Reborn = { running: () => next.promise };
  return {
    ...reborn,
    start: async () => {
      const service = await serveWatched(t, env);
      next.resolve(service);
      return service;
    },
    kill: async () => {
      const service = await next.promise;
      next = Promise.withResolvers();
      assert.equal(await service.stop('SIGKILL'), null);
    },
  };
}

/** Asserts that a feed has each event once, without gaps, and the events of all responses. */
function assertComplete(
  feed: readonly EventWithCaller[],
  happened: readonly string[],
  answered: Iterable<string>,
) {
  assert.deepEqual(
    feed.map(({ sequence }) => sequence),
    feed.map((_, place) => place + 1),
  );
  assert.equal(new Set(feed.map(({ id }) => id)).size, feed.length, 'no two have the same id');
  const events = feed.map(lineOf);
  assert.deepEqual([...events].sort(), [...happened].sort());
  for (const line of answered) assert.ok(events.includes(line), `${line} has a response and no event`);
}

test(`money agrees with orders, and feed and streams miss nothing through ${kills} kills under load`, {
  timeout: 3 * timeoutMs + kills * 20_000,
}, async (t: TestContext) => {
  const random = createRandom();
  t.diagnostic(`seed ${random.seed}`);
  const dataDir = temporaryFolder(t);
  const { platforms: issued, token } = await issueInto(dataDir, platforms);
  const service = createReborn(t, { ARTSEAL_DATA_DIR: dataDir });
  await service.start();

  const [closing, leaving] = [new AbortController(), new AbortController()];
  t.after(() => leaving.abort());
  const selling = sell(service, issued, random, closing.signal);
  const polls = issued.map((platform) => poll(service, platform, leaving.signal));
  const [first = assert.fail()] = issued;
  const watchers = [undefined, first.caller].map((name) => watchOver(service, token, name, leaving.signal));
  for (let life = 1; life <= kills; life += 1) {
    const enough = selling.answers() + 1 + random.below(answersMax);
    await eventually('calls are answered', timeoutMs, () => selling.answers() >= enough);
    await service.kill();
    await service.start();
  }
  closing.abort();
  await selling.ended;

  const happened = await eventually('all orders are settled', timeoutMs, () => happenedTo(dataDir));
  const last = await service.running();
  const feeds = await Promise.all(issued.map((platform) => readFeed(last.publicUrl, platform)));
  const events = feeds.reduce((sum, { length }) => sum + length, 0);
  for (const [place, platform] of issued.entries()) {
    const feed = feeds[place] ?? [];
    const gathered = [
      polls[place]?.events,
      ...watchers.map((watcher) => watcher.events.get(platform.caller)),
    ];
    await eventually(`all ${feed.length} events of ${platform.caller} arrive`, timeoutMs, () =>
      gathered.every((own) => own === undefined || own.length >= feed.length),
    );
  }
  leaving.abort();
  await Promise.all([...polls, ...watchers].map(({ ended }) => ended));
  assert.equal(await last.stop('SIGTERM'), 0);

  for (const pair of await statesAndMoney(dataDir))
    assert.match(pair, /^(FROZEN HELD|RELEASED PAID_OUT|REFUNDED RETURNED|CLOSED (VOID|RETURNED|null))$/);
  for (const [place, platform] of issued.entries()) {
    const { caller } = platform;
    const feed = feeds[place] ?? [];
    assertComplete(feed, happened.get(caller) ?? [], selling.answered.get(caller) ?? []);
    assert.deepEqual(polls[place]?.events, feed, 'a poll');
    assert.deepEqual(watchers[0]?.events.get(caller), feed, 'a stream of all platforms');
  }
  assert.deepEqual([...(watchers[1]?.events ?? [])], [[first.caller, feeds[0]]], 'a stream of one platform');
  t.diagnostic(`${events} events, ${selling.answers()} answers`);
});
