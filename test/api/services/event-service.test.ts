import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  EventService,
  ListEventsRequestSchema,
  type ListEventsResponse,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
} from '../../../gen/artseal/v1/event_pb.ts';
import { createDispatcher, type Principal } from '../../../src/api/operation.ts';
import type { ServiceDependencies } from '../../../src/api/services/dependencies.ts';
import { createEventService } from '../../../src/api/services/event-service.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { eventRetentionS } from '../../../src/domain/event.ts';
import { createFeed, createPolls, wakeEveryMs } from '../../../src/events/feed.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { executorOf, perform } from '../../../src/store/store.ts';
import { addPlatform, fileOne, newToken, sandbox } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { apiError } from '../../support/rejected.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { ledger } from '../../support/tokens.ts';

const { listEvents, watchEvents } = EventService.method;
const idKey = Buffer.alloc(32, 7);
const startMs = Date.UTC(2026, 10, 21, 12);

/** The operations on a store of their own, with a manual clock. */
async function openService(t: TestContext) {
  const clock = createManualClock(startMs);
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const execute = executorOf(store);
  const { timestamp } = createCalendar('Asia/Shanghai');
  const feed = createFeed(store, clock);
  const polls = createPolls();
  const dependencies: Partial<ServiceDependencies> = { feed, polls, clock, idKey, timestamp };
  const dispatcher = createDispatcher([createEventService(dependencies as ServiceDependencies)]);
  const { callerId, caller } = await addPlatform(store, 'gallery');
  await perform(store, { kind: 'AddToken', by: tester, name: 'ledger', token: newToken() });
  const gallery: Principal = {
    kind: 'platform',
    callerId,
    caller,
    tier: 'ENTERPRISE',
    monthlyQuota: undefined,
  };
  const other = await addPlatform(store, 'museum');
  const system: Principal = { ...ledger, ...(await execute({ kind: 'FindCaller', name: 'ledger' })) };
  const forGallery: Principal = { ...system, callerId, caller, isPlatform: true };

  /** Makes a filing; returns its number. */
  const file = (by: CallerRef = gallery) => {
    const atMs = clock.nowMs();
    return fileOne(store, by, { atMs, timestamp: timestamp(atMs) });
  };
  /** A call of ListEvents; `waits` resolves each time that it begins to wait. */
  const list = (
    request: MessageInitShape<typeof ListEventsRequestSchema>,
    principal: Principal = gallery,
  ) => {
    let waits = Promise.withResolvers<void>();
    const admit = () => assert.fail('The first command admits the call.');
    const pause = <T>(wait: () => Promise<T>): Promise<T> => {
      const waiting = wait();
      waits.resolve();
      return waiting;
    };
    const message = create(ListEventsRequestSchema, request);
    const answer = dispatcher.invoke(listEvents, message, {
      ...{ principal, admit, execute, executeNext: execute, pause },
    });
    return {
      answer: answer as Promise<ListEventsResponse>,
      waits: async () => {
        await waits.promise;
        waits = Promise.withResolvers();
      },
    };
  };
  /** A stream of WatchEvents. */
  const watch = (
    request: MessageInitShape<typeof WatchEventsRequestSchema> = {},
    principal: Principal = system,
  ) => {
    const gone = new AbortController();
    t.after(() => gone.abort());
    const message = create(WatchEventsRequestSchema, request);
    const call = { principal, execute, signal: gone.signal };
    const answers = dispatcher.stream(watchEvents, message, call) as AsyncGenerator<WatchEventsResponse>;
    return {
      gone,
      answers,
      /** The next message: filing number or type, platform, and cursor. */
      next: async () => {
        const { done, value } = await answers.next();
        return done ? 'over' : [value.event?.filingNo ?? value.event?.type, value.platform, value.next];
      },
    };
  };
  return { clock, dataDir, feed, gallery, other, system, forGallery, file, list, watch };
}

const heartbeat = (next: bigint) => [undefined, '', next];

test('a call waits until there is an event of its caller', async (t) => {
  const { clock, other, file, list } = await openService(t);
  const { answer, waits } = list({ after: 0n, waitSeconds: 30 });
  await waits();
  await file(other);
  clock.advance(wakeEveryMs);
  const filingNo = await file();
  clock.advance(wakeEveryMs);
  const { events, next } = await answer;
  assert.deepEqual([events.map((event) => event.filingNo), next], [[filingNo], 1n]);
});

test('a call that waits returns no events when its time is over', async (t) => {
  const { clock, file, list } = await openService(t);
  await file();
  const { answer, waits } = list({ after: 1n, waitSeconds: 30 });
  await waits();
  clock.advance(29_999);
  let isAnswered = false;
  void answer.then(() => {
    isAnswered = true;
  });
  assert.deepEqual((await list({}).answer).next, 1n);
  assert.equal(isAnswered, false);
  clock.advance(1);
  const { events, next } = await answer;
  assert.deepEqual([events, next], [[], 1n]);
});

test('a stream of all callers has the events of each, with positions as cursors', async (t) => {
  const { clock, gallery, other, file, watch } = await openService(t);
  const before = [await file(), await file(other)];
  const { next } = watch();
  assert.deepEqual(await next(), heartbeat(0n));
  assert.deepEqual(await next(), [before[0], 'gallery', 1n]);
  assert.deepEqual(await next(), [before[1], 'museum', 2n]);
  const waiting = next();
  const filingNo = await file(gallery);
  clock.advance(wakeEveryMs);
  assert.deepEqual(await waiting, [filingNo, 'gallery', 3n]);
});

test('a stream of one platform has only its events, with sequences as cursors', async (t) => {
  const { clock, other, file, watch } = await openService(t);
  await file(other);
  const filed = [await file(), await file()];
  await file(other);
  const { next } = watch({ platform: 'gallery', after: 1n });
  assert.deepEqual(await next(), heartbeat(1n));
  assert.deepEqual(await next(), [filed[1], 'gallery', 2n]);
  const waiting = next();
  await file(other);
  const filingNo = await file();
  clock.advance(wakeEveryMs);
  assert.deepEqual(await waiting, [filingNo, 'gallery', 3n]);
});

test('an internal system can be watched by name, too', async (t) => {
  const { system, file, watch } = await openService(t);
  const filingNo = await file(system);
  const { next } = watch({ platform: 'ledger' });
  assert.deepEqual(await next(), heartbeat(0n));
  assert.deepEqual(await next(), [filingNo, 'ledger', 1n]);
});

test('a token for a platform watches only this platform, named or not', async (t) => {
  const { other, forGallery, file, watch } = await openService(t);
  await file(other);
  const filingNo = await file();
  for (const request of [{}, { platform: 'gallery' }]) {
    const { next } = watch(request, forGallery);
    assert.deepEqual(await next(), heartbeat(0n));
    assert.deepEqual(await next(), [filingNo, 'gallery', 1n]);
  }
  const rejected = watch({ platform: 'museum' }, forGallery);
  await assert.rejects(rejected.next(), apiError('PERMISSION_DENIED', /acts for gallery/));
  // The error does not show whether the platform exists.
  const unknown = watch({ platform: 'nobody' }, forGallery);
  await assert.rejects(unknown.next(), apiError('PERMISSION_DENIED'));
});

test('an unknown name cannot be watched', async (t) => {
  const { watch } = await openService(t);
  const message = /^platform names no platform and no internal system/;
  await assert.rejects(watch({ platform: 'nobody' }).next(), apiError('NOT_FOUND', message));
});

test('a cursor that is not a safe integer is rejected', async (t) => {
  const { watch } = await openService(t);
  const message = /^after must be an integer from 0 to 9007199254740991$/;
  for (const after of [-1n, 2n ** 53n, -(2n ** 63n)]) {
    await assert.rejects(watch({ after }).next(), apiError('VALIDATION_FAILED', message));
  }
});

test('a stream sends its cursor after 15 seconds of silence', async (t) => {
  const { clock, file, watch } = await openService(t);
  const { next } = watch();
  assert.deepEqual(await next(), heartbeat(0n));
  const beats = async (place: bigint) => {
    const waiting = next();
    await turns();
    clock.advance(14_999);
    assert.equal(await Promise.race([waiting, turns()]), undefined);
    clock.advance(1);
    assert.deepEqual(await waiting, heartbeat(place));
  };
  await beats(0n);
  await beats(0n);
  const waiting = next();
  await turns();
  clock.advance(14_000);
  const filingNo = await file();
  clock.advance(wakeEveryMs);
  assert.deepEqual(await waiting, [filingNo, 'gallery', 1n]);
  await beats(1n);
});

test('an expired cursor is rejected, and the oldest kept event is a valid cursor', async (t) => {
  const { clock, file, list, watch } = await openService(t);
  for (let filing = 0; filing < 100; filing += 1) await file();
  clock.leap(eventRetentionS * 1_000 + 86_400_000);
  const kept: string[] = [];
  for (let filing = 0; filing < 100; filing += 1) kept.push(await file());

  for (const request of [{}, { platform: 'gallery' }]) {
    await assert.rejects(watch({ ...request, after: 0n }).next(), apiError('EVENTS_EXPIRED'));
    const whole = watch(request);
    const [, , from] = (await whole.next()) as [unknown, unknown, bigint];
    const [first] = await whole.next();
    // A client that got only the first cursor misses nothing.
    const resumed = watch({ ...request, after: from });
    assert.deepEqual(await resumed.next(), heartbeat(from));
    assert.equal((await resumed.next())[0], first);
  }
  await assert.rejects(list({ after: 0n }).answer, apiError('EVENTS_EXPIRED'));
  const { events } = await list({}).answer;
  assert.ok(events.length > 0 && kept.includes(events.at(-1)?.filingNo ?? ''));
});

test('a stream ends when its client leaves, even while it waits', async (t) => {
  const { watch } = await openService(t);
  const { next, gone } = watch();
  await next();
  const waiting = next();
  await turns();
  gone.abort();
  assert.equal(await waiting, 'over');
});

test('a stream and a call that waits end when the feed ends', async (t) => {
  const { feed, list, watch } = await openService(t);
  const { next } = watch();
  await next();
  const streaming = next();
  const { answer, waits } = list({ waitSeconds: 30 });
  await waits();
  feed.end();
  assert.equal(await streaming, 'over');
  const { events, next: place } = await answer;
  assert.deepEqual([events, place], [[], 0n]);
});

/** Waits until nothing more happens without the clock: the store of these tests needs only some turns. */
async function turns(): Promise<undefined> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return undefined;
}
