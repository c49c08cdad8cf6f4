import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect as connectHttp2, type Http2ServerResponse } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type CallOptions, createClient } from '@connectrpc/connect';
import pino from 'pino';
import { EventService, type WatchEventsResponse } from '../../../gen/artseal/v1/event_pb.ts';
import { createDispatcher } from '../../../src/api/dispatcher.ts';
import { implement, operation, parsed, type StreamCall, streaming } from '../../../src/api/operation.ts';
import { createCalls } from '../../../src/api/pipeline.ts';
import type { ServicePrincipal } from '../../../src/api/principal.ts';
import { streamsMax } from '../../../src/api/streams.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { ApiError } from '../../../src/domain/reason.ts';
import { createInternalListener } from '../../../src/http/connect/internal-listener.ts';
import { createTypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { createClientOf } from '../../../src/http/listen/clients.ts';
import { createOpenCalls } from '../../../src/http/listen/open-calls.ts';
import { createKeyRing, parseMasterKeys } from '../../../src/keys/key-ring.ts';
import type { Store } from '../../../src/store/store.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { listenLocally } from '../../support/local-server.ts';
import { openObserver } from '../../support/observer.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { createSwitchedReadiness } from '../../support/readiness.ts';
import { ledger } from '../../support/tokens.ts';
import { bearer, typedRefusal } from '../../support/typed-clients.ts';
import { enveloped } from './raw-call.ts';
import { transports } from './transports.ts';

/** What a stream of the test answers. */
type Answers = (call: StreamCall) => AsyncIterable<{ readonly next: bigint; readonly platform?: string }>;

/**
 * The internal door and the pipeline before one stream; a token is known by whatever text it has. A client may take nothing
 * for `stalledMs`.
 */
async function openDoor(t: TestContext, run: Answers, stalledMs?: number) {
  const lines: { readonly requestId: string; readonly level: number; readonly [name: string]: unknown }[] =
    [];
  const log = pino({ base: null }, { write: (line) => lines.push(JSON.parse(line)) });
  const watched = { open: 0, begun: 0 };
  const counted: Answers = async function* (call) {
    watched.open += 1;
    watched.begun += 1;
    try {
      yield* run(call);
    } finally {
      watched.open -= 1;
    }
  };
  const parse = () => parsed([], () => undefined);
  const dispatcher = createDispatcher([
    implement(EventService, 'read', {
      listEvents: operation({ parse, run: async () => ({}) }),
      watchEvents: streaming({ parse, run: (_input, call) => counted(call) }),
    }),
  ]);
  const calls = createCalls({
    ...{ dispatcher, clock: createManualClock(), calendar: createCalendar('UTC') },
    store: { execute: () => assert.fail('Nothing is stored here.') } as unknown as Store,
    keyRing: createKeyRing(parseMasterKeys('0'.repeat(64))),
  });
  const draining = new AbortController();
  const ended = new Set<string>();
  const bearerCheck = (authorization: string | null): ServicePrincipal => {
    const tokenId = authorization ?? '';
    if (ended.has(tokenId)) throw new ApiError('AUTH_HEADER_INVALID', 'The token was revoked.');
    return { ...ledger, tokenId };
  };
  const { services } = dispatcher;
  const readiness = createSwitchedReadiness();
  const typedCalls = createTypedCalls({ calls, services, bearerCheck, readiness, draining: draining.signal });
  const responses: (ServerResponse | Http2ServerResponse)[] = [];
  const listener = createInternalListener({
    typedCalls: (...call) => {
      responses.push(call[1]);
      typedCalls(...call);
    },
    openCalls: createOpenCalls(stalledMs),
    ...{ clientOf: createClientOf([]), tls: undefined, observer: openObserver('internal', log) },
  });
  const baseUrl = await listenLocally(t, listener.server, listener.destroy);
  return {
    ...{ lines, watched, draining, baseUrl, responses },
    revoke: (token: string) => ended.add(`Bearer ${token}`),
    /** The line of the stream that ended, or of the last of several. */
    logged: () => eventually('the line of the call', 60_000, () => lines.at(-1)),
  };
}

/** A stream that tells a message at once, and then those that the test lets it tell. */
function tellOnceAndWait(): { answers: Answers; tell(): void } {
  let next = Promise.withResolvers<void>();
  return {
    answers: async function* ({ signal }) {
      const over = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => over.resolve());
      for (let place = 0n; !signal.aborted; place += 1n) {
        yield { next: place };
        await Promise.race([next.promise, over.promise]);
      }
    },
    tell: () => {
      next.resolve();
      next = Promise.withResolvers();
    },
  };
}

/** More and more messages, as many as are taken. */
const withoutEnd: Answers = async function* () {
  for (let next = 0n; ; next += 1n) yield { next, platform: 'x'.repeat(300) };
};

const watch = (transport: ReturnType<(typeof transports)[string]>, options: CallOptions = {}) =>
  createClient(EventService, transport).watchEvents({}, options)[Symbol.asyncIterator]();

for (const [name, transport] of Object.entries(transports)) {
  test(`a stream is told as it goes, and ends as its operation does: ${name}`, async (t) => {
    const { baseUrl, logged } = await openDoor(t, async function* () {
      yield { next: 1n };
      yield { next: 2n };
    });
    const messages = await Array.fromAsync(
      createClient(EventService, transport(baseUrl, 'it_1')).watchEvents({}),
    );
    assert.deepEqual(
      messages.map(({ next }) => next),
      [1n, 2n],
    );
    const line = await logged();
    assert.deepEqual(
      [line.operation, line.caller, line.tokenId, line.reason],
      ['artseal.v1.EventService/WatchEvents', 'ledger', 'Bearer it_1', undefined],
    );
  });

  test(`a apiError in the middle of a stream comes behind what was told: ${name}`, async (t) => {
    const { baseUrl, logged } = await openDoor(t, async function* () {
      yield { next: 1n };
      throw new ApiError('EVENTS_EXPIRED', 'They are gone.');
    });
    const stream = watch(transport(baseUrl, 'it_1'));
    assert.equal((await stream.next()).value?.next, 1n);
    const { message } = await typedRefusal(stream.next(), 'EVENTS_EXPIRED');
    assert.equal(message, 'They are gone.');
    assert.equal((await logged()).reason, 'EVENTS_EXPIRED');
  });

  test(`what nobody foresaw ends a stream with INTERNAL, and is in the log: ${name}`, async (t) => {
    const { baseUrl, logged } = await openDoor(t, async function* () {
      yield { next: 1n };
      throw new TypeError('SELECT secret FROM vault');
    });
    const stream = watch(transport(baseUrl, 'it_1'));
    await stream.next();
    const { message } = await typedRefusal(stream.next(), 'INTERNAL');
    assert.doesNotMatch(message, /SELECT/);
    assert.match(JSON.stringify((await logged()).err), /SELECT secret/);
  });

  test(`a stream that meets its deadline ends with TIMEOUT: ${name}`, async (t) => {
    const { answers } = tellOnceAndWait();
    const { baseUrl, watched } = await openDoor(t, answers);
    // A client that knew of its deadline would end the call itself.
    const headers = { 'grpc-timeout': '300m', 'Connect-Timeout-Ms': '300' };
    const stream = watch(transport(baseUrl, 'it_1'), { headers });
    await stream.next();
    await typedRefusal(stream.next(), 'TIMEOUT');
    assert.equal(watched.open, 0);
  });

  test(`draining ends a stream with UNAVAILABLE: ${name}`, async (t) => {
    const { answers } = tellOnceAndWait();
    const { baseUrl, draining, watched, logged } = await openDoor(t, answers);
    const stream = watch(transport(baseUrl, 'it_1'));
    await stream.next();
    draining.abort();
    const { message, retryAfter } = await typedRefusal(stream.next(), 'UNAVAILABLE');
    assert.match(message, /Open the stream anew/);
    assert.equal(retryAfter, '1');
    assert.equal(watched.open, 0);
    // An operator who stops the service knows.
    const { reason, level } = await logged();
    assert.deepEqual([reason, level], ['UNAVAILABLE', 30]);
  });

  test(`a token that ends while its stream is open ends it, before anything more is told: ${name}`, async (t) => {
    const { answers, tell } = tellOnceAndWait();
    const { baseUrl, revoke, watched } = await openDoor(t, answers);
    const [stream, other] = ['it_1', 'it_2'].map((token) => watch(transport(baseUrl, token)));
    assert.equal((await stream?.next())?.value?.next, 0n);
    assert.equal((await other?.next())?.value?.next, 0n);
    revoke('it_1');
    tell();
    await typedRefusal(stream?.next() ?? assert.fail(), 'AUTH_HEADER_INVALID');
    assert.equal((await other?.next())?.value?.next, 1n);
    assert.equal(watched.open, 1);
  });

  test(`a client that breaks a stream off ends it at once: ${name}`, async (t) => {
    const { answers } = tellOnceAndWait();
    const { baseUrl, watched, logged } = await openDoor(t, answers);
    const broken = new AbortController();
    const stream = watch(transport(baseUrl, 'it_1'), { signal: broken.signal });
    await stream.next();
    assert.equal(watched.open, 1);
    broken.abort();
    await assert.rejects(stream.next());
    await eventually('the end of the stream', 60_000, () => watched.open === 0);
    assert.equal((await logged()).reason, 'CANCELLED');
  });

  test(`streams have a limit of their own, a token has another, and what ends makes room: ${name}`, async (t) => {
    const { answers } = tellOnceAndWait();
    const { baseUrl, watched } = await openDoor(t, answers);
    const open: { readonly broken: AbortController; readonly token: string }[] = [];
    const begin = async (token: string) => {
      const broken = new AbortController();
      // A connection for each, for one takes a limited number of calls.
      const stream = watch(transport(baseUrl, token), { signal: broken.signal });
      await stream.next();
      open.push({ broken, token });
    };
    const tokens = Array.from({ length: streamsMax.all / streamsMax.ofToken }, (_, place) => `it_${place}`);
    for (let of = 0; of < streamsMax.ofToken; of += 1) await begin('it_0');
    const { message, retryAfter } = await typedRefusal(begin('it_0'), 'RATE_LIMITED');
    assert.match(message, /^At most 20 streams at the same time with one token/);
    assert.equal(retryAfter, '1');
    for (const token of tokens.slice(1)) {
      await Promise.all(Array.from({ length: streamsMax.ofToken }, () => begin(token)));
    }
    assert.equal(watched.open, streamsMax.all);
    await typedRefusal(begin('it_other'), 'UNAVAILABLE');
    open[0]?.broken.abort();
    await eventually('room for another stream', 60_000, () => watched.open < streamsMax.all);
    await begin('it_0');
    assert.equal(watched.open, streamsMax.all);
  });
}

/** How a client opens a stream that it then takes nothing of. */
const takingNothing: Record<string, (t: TestContext, baseUrl: string) => Promise<() => void>> = {
  'over HTTP/1.1': async (t, baseUrl) => {
    const socket = await openSocket(baseUrl);
    t.after(() => socket.destroy());
    const headers = {
      Host: 'x',
      'Content-Type': 'application/connect+json',
      'Content-Length': '7',
      ...bearer('it_1'),
    };
    socket.pause();
    socket.write(rawRequest('POST', '/artseal.v1.EventService/WatchEvents', headers, enveloped('{}')));
    return () => socket.destroy();
  },
  'over HTTP/2': async (t, baseUrl) => {
    const session = connectHttp2(baseUrl);
    session.on('error', () => {});
    t.after(() => session.destroy());
    const stream = session.request({
      ':method': 'POST',
      ':path': '/artseal.v1.EventService/WatchEvents',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...bearer('it_1'),
    });
    stream.on('error', () => {});
    stream.end(enveloped(''));
    await once(stream, 'response');
    return () => session.destroy();
  },
};

for (const [name, open] of Object.entries(takingNothing)) {
  test(`a client that takes nothing has little buffered for it, and is cut off: ${name}`, async (t) => {
    let told = 0;
    const answers: Answers = async function* (call) {
      for await (const answer of withoutEnd(call)) {
        told += 1;
        yield answer;
      }
    };
    const { baseUrl, watched, responses, logged } = await openDoor(t, answers, 2_000);
    await open(t, baseUrl);
    // What the kernel takes is taken; then nothing moves any more.
    let before = -1;
    await eventually('the stream to be held up', 60_000, async () => {
      if (told > 0 && told === before) return true;
      before = told;
      return new Promise<boolean>((resolve) => setTimeout(resolve, 300, false));
    });
    // What is on its way over HTTP/1.1 is counted by the answer and by its connection.
    const [response] = responses;
    const buffered = Math.max(response?.writableLength ?? 0, response?.socket?.writableLength ?? 0);
    t.diagnostic(`${told} messages told, ${buffered} bytes buffered`);
    assert.ok(buffered < 100_000, `${buffered} bytes`);
    assert.ok(told < 100_000, `${told} messages`);
    await eventually('the end of the stream', 60_000, () => watched.open === 0);
    const { reason, level } = await logged();
    assert.deepEqual([reason, level], ['TIMEOUT', 30]);
  });

  test(`a client that takes nothing and goes away ends its stream, and no fault is logged: ${name}`, async (t) => {
    const { baseUrl, watched, logged } = await openDoor(t, withoutEnd);
    const leave = await open(t, baseUrl);
    await eventually('the stream', 60_000, () => watched.open === 1);
    leave();
    await eventually('the end of the stream', 60_000, () => watched.open === 0);
    assert.equal((await logged()).level, 30);
  });
}

test('a client of HTTP/1.1 that closes its half ends its stream', async (t) => {
  const { answers } = tellOnceAndWait();
  const { baseUrl, watched } = await openDoor(t, answers);
  const socket = await openSocket(baseUrl);
  const headers = {
    Host: 'x',
    'Content-Type': 'application/grpc-web+json',
    'Content-Length': '7',
    ...bearer('it_1'),
  };
  socket.write(rawRequest('POST', '/artseal.v1.EventService/WatchEvents', headers, enveloped('{}')));
  await once(socket, 'data');
  assert.equal(watched.open, 1);
  socket.end();
  await eventually('the end of the stream', 60_000, () => watched.open === 0);
});

test('a stream whose answers are taken is not cut off, however long it has none', async (t) => {
  const { answers, tell } = tellOnceAndWait();
  const { baseUrl } = await openDoor(t, answers, 100);
  const stream = watch((transports['gRPC over HTTP/2'] ?? assert.fail())(baseUrl, 'it_1'));
  for (let place = 0n; place < 5n; place += 1n) {
    const { value } = (await stream.next()) as { value: WatchEventsResponse };
    assert.equal(value.next, place);
    await delay(300);
    tell();
  }
});
