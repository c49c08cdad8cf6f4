import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type CallOptions, createClient } from '@connectrpc/connect';
import { EventService, type WatchEventsResponse } from '../../../gen/artseal/v1/event_pb.ts';
import type { ServicePrincipal, StreamCall } from '../../../src/api/operation.ts';
import { streamsMax } from '../../../src/api/pipeline.ts';
import { ApiError } from '../../../src/domain/reason.ts';
import type { Identify } from '../../../src/http/connect/typed-calls.ts';
import { eventually } from '../../support/eventually.ts';
import { implementOnly } from '../../support/implement-only.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { ledger } from '../../support/tokens.ts';
import { bearer, typedError } from '../../support/typed-clients.ts';
import { openOperations } from './bare-listener.ts';
import { enveloped } from './raw-call.ts';
import { transports } from './transports.ts';

/** The operation of a test that streams. */
type Operation = (call: StreamCall) => AsyncIterable<{ readonly next: bigint; readonly platform?: string }>;

/**
 * The listener and the pipeline with one operation that streams. Every token is valid until it is revoked. A client may
 * read nothing for `stalledMs`.
 */
async function openListener(t: TestContext, run: Operation, stalledMs?: number) {
  const watched = { open: 0 };
  const counted: Operation = async function* (call) {
    watched.open += 1;
    try {
      yield* run(call);
    } finally {
      watched.open -= 1;
    }
  };
  const implementation = implementOnly(EventService, 'read', {
    listEvents: { run: async () => ({}) },
    watchEvents: { run: (_, call) => counted(call) },
  });
  const draining = new AbortController();
  const ended = new Set<string>();
  const identify: Identify = (header): ServicePrincipal => {
    const tokenId = header('authorization') ?? '';
    if (ended.has(tokenId)) throw new ApiError('AUTH_HEADER_INVALID', 'The token was revoked.');
    return { ...ledger, tokenId };
  };
  const options = { identify, draining: draining.signal, stalledMs };
  const { baseUrl, responses, logLines } = await openOperations(t, implementation, options);
  return {
    ...{ watched, draining, baseUrl, responses },
    revoke: (token: string) => ended.add(`Bearer ${token}`),
    /** The log line of the stream that ended last. */
    logged: async () => JSON.parse(await eventually('the log line', 60_000, () => logLines.at(-1))),
  };
}

/** A stream that sends a message at once, and a further one with each call of `send`. */
function sendOnRequest(): { operation: Operation; send(): void } {
  let next = Promise.withResolvers<void>();
  return {
    operation: async function* ({ signal }) {
      const over = Promise.withResolvers<void>();
      signal.addEventListener('abort', () => over.resolve());
      for (let sequence = 0n; !signal.aborted; sequence += 1n) {
        yield { next: sequence };
        await Promise.race([next.promise, over.promise]);
      }
    },
    send: () => {
      next.resolve();
      next = Promise.withResolvers();
    },
  };
}

/** An endless stream of messages. */
const withoutEnd: Operation = async function* () {
  for (let next = 0n; ; next += 1n) yield { next, platform: 'x'.repeat(10_000) };
};

const watch = (transport: ReturnType<(typeof transports)[string]>, options: CallOptions = {}) =>
  createClient(EventService, transport).watchEvents({}, options)[Symbol.asyncIterator]();

for (const [name, transport] of Object.entries(transports)) {
  test(`a stream sends the messages of its operation and ends with it: ${name}`, async (t) => {
    const { baseUrl, logged } = await openListener(t, async function* () {
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

  test(`an error in the middle of a stream follows the messages before it: ${name}`, async (t) => {
    const { baseUrl, logged } = await openListener(t, async function* () {
      yield { next: 1n };
      throw new ApiError('EVENTS_EXPIRED', 'They are gone.');
    });
    const stream = watch(transport(baseUrl, 'it_1'));
    assert.equal((await stream.next()).value?.next, 1n);
    const { message } = await typedError(stream.next(), 'EVENTS_EXPIRED');
    assert.equal(message, 'They are gone.');
    assert.equal((await logged()).reason, 'EVENTS_EXPIRED');
  });
}

const grpc = transports['gRPC over HTTP/2'] ?? assert.fail();

test('an unknown error ends a stream with INTERNAL, and only the log has its message', async (t) => {
  const { baseUrl, logged } = await openListener(t, async function* () {
    yield { next: 1n };
    throw new TypeError('SELECT secret FROM vault');
  });
  const stream = watch(grpc(baseUrl, 'it_1'));
  await stream.next();
  const { message } = await typedError(stream.next(), 'INTERNAL');
  assert.doesNotMatch(message, /SELECT/);
  assert.match(JSON.stringify((await logged()).err), /SELECT secret/);
});

test('draining ends a stream with UNAVAILABLE, logged as information', async (t) => {
  const { baseUrl, draining, watched, logged } = await openListener(t, sendOnRequest().operation);
  const stream = watch(grpc(baseUrl, 'it_1'));
  await stream.next();
  draining.abort();
  const { message, retryAfter } = await typedError(stream.next(), 'UNAVAILABLE');
  assert.match(message, /Open the stream again/);
  assert.equal(retryAfter, '1');
  assert.equal(watched.open, 0);
  const { reason, level } = await logged();
  assert.deepEqual([reason, level], ['UNAVAILABLE', 30]);
});

test('a token that is revoked while its stream is open ends the stream before its next message', async (t) => {
  const { operation: sending, send } = sendOnRequest();
  const { baseUrl, revoke, watched } = await openListener(t, sending);
  const [stream, other] = [watch(grpc(baseUrl, 'it_1')), watch(grpc(baseUrl, 'it_2'))];
  for (const each of [stream, other]) assert.equal((await each.next()).value?.next, 0n);
  revoke('it_1');
  send();
  await typedError(stream.next(), 'AUTH_HEADER_INVALID');
  assert.equal((await other.next()).value?.next, 1n);
  assert.equal(watched.open, 1);
});

test('all streams and those of one token have limits, and a stream that ends makes room', async (t) => {
  const { baseUrl, watched } = await openListener(t, sendOnRequest().operation);
  const open: AbortController[] = [];
  const begin = async (token: string) => {
    const broken = new AbortController();
    // A connection for each: one connection takes a limited number of calls.
    await watch(grpc(baseUrl, token), { signal: broken.signal }).next();
    open.push(broken);
  };
  for (let of = 0; of < streamsMax.ofToken; of += 1) await begin('it_0');
  const { message, retryAfter } = await typedError(begin('it_0'), 'RATE_LIMITED');
  assert.match(message, /^At most 20 streams at the same time with one token/);
  assert.equal(retryAfter, '1');
  for (let of = streamsMax.ofToken; of < streamsMax.all; of += 1) {
    await begin(`it_${Math.floor(of / streamsMax.ofToken)}`);
  }
  assert.equal(watched.open, streamsMax.all);
  await typedError(begin('it_other'), 'UNAVAILABLE');
  open[0]?.abort();
  await eventually('room for another stream', 60_000, () => watched.open < streamsMax.all);
  await begin('it_0');
  assert.equal(watched.open, streamsMax.all);
});

for (const name of ['Connect over HTTP/1.1', 'gRPC over HTTP/2']) {
  const transport = transports[name] ?? assert.fail(name);

  test(`a stream ends with TIMEOUT at its deadline: ${name}`, async (t) => {
    const { baseUrl, watched } = await openListener(t, sendOnRequest().operation);
    // A client that knew its deadline would end the call itself.
    const headers = { 'grpc-timeout': '300m', 'Connect-Timeout-Ms': '300' };
    const stream = watch(transport(baseUrl, 'it_1'), { headers });
    await stream.next();
    await typedError(stream.next(), 'TIMEOUT');
    assert.equal(watched.open, 0);
  });

  test(`a stream ends as soon as its client breaks it off: ${name}`, async (t) => {
    const { baseUrl, watched, logged } = await openListener(t, sendOnRequest().operation);
    const broken = new AbortController();
    const stream = watch(transport(baseUrl, 'it_1'), { signal: broken.signal });
    await stream.next();
    assert.equal(watched.open, 1);
    broken.abort();
    await assert.rejects(stream.next());
    await eventually('the end of the stream', 60_000, () => watched.open === 0);
    assert.equal((await logged()).reason, 'CANCELLED');
  });
}

/** Opens a stream that its client does not read; returns how the client leaves. */
const openUnread: Record<string, (t: TestContext, baseUrl: string) => Promise<() => void>> = {
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

for (const [name, open] of Object.entries(openUnread)) {
  test(`a client that does not read its stream is cut off, and little is buffered for it: ${name}`, async (t) => {
    let [sent, buffered] = [0, 0];
    const measured: Operation = async function* (call) {
      for await (const message of withoutEnd(call)) {
        sent += 1;
        // Over HTTP/1.1 the response and its connection both count the bytes that are not sent.
        const [response] = responses;
        buffered = Math.max(buffered, response?.writableLength ?? 0, response?.socket?.writableLength ?? 0);
        yield message;
      }
    };
    const { baseUrl, watched, responses, logged } = await openListener(t, measured, 500);
    await open(t, baseUrl);
    await eventually('the end of the stream', 60_000, () => sent > 0 && watched.open === 0);
    assert.ok(buffered < 200_000, `${buffered} bytes`);
    assert.ok(sent < 3_000, `${sent} messages`);
    const { reason, level } = await logged();
    assert.deepEqual([reason, level], ['TIMEOUT', 30]);
  });

  test(`a client that does not read its stream and leaves ends it, which is no error of the server: ${name}`, async (t) => {
    const { baseUrl, watched, logged } = await openListener(t, withoutEnd);
    const leave = await open(t, baseUrl);
    await eventually('the stream', 60_000, () => watched.open === 1);
    leave();
    await eventually('the end of the stream', 60_000, () => watched.open === 0);
    assert.equal((await logged()).level, 30);
  });
}

test('a client of HTTP/1.1 that closes its half ends its stream', async (t) => {
  const { baseUrl, watched } = await openListener(t, sendOnRequest().operation);
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

test('a stream without new messages is not cut off if its client read all others', async (t) => {
  const { operation: sending, send } = sendOnRequest();
  const { baseUrl } = await openListener(t, sending, 50);
  const stream = watch(grpc(baseUrl, 'it_1'));
  for (let sequence = 0n; sequence < 3n; sequence += 1n) {
    const { value } = (await stream.next()) as { value: WatchEventsResponse };
    assert.equal(value.next, sequence);
    await delay(200);
    send();
  }
});
