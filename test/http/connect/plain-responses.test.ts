import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { deadlineMsMax, shortenDeadline } from '../../../src/http/connect/requests.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { startService } from '../../support/service.ts';
import { bearer, typedClients, typedError } from '../../support/typed-clients.ts';
import { openBareListener } from './bare-listener.ts';
import {
  connectAnswer,
  enveloped,
  overConnect,
  overGrpc,
  overGrpcWeb,
  type RawSending,
  reasonOf,
} from './raw-call.ts';
import { endStream, frame, framesIn, frameTypes, openWindow, requestHeaders } from './raw-http2.ts';
import { transports } from './transports.ts';

const service = await startService(fileScope);
const token = await service.token();
const baseUrl = service.internalUrl;
const list = `${baseUrl}/artseal.v1.FilingService/ListFilings`;
const reflection = 'grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

/** The log line of the call with these response headers. */
async function logged(headers: Headers): Promise<{ level: number; reason?: string; operation?: string }> {
  const requestId = headers.get('X-Request-Id');
  assert.ok(requestId);
  const line = await eventually('the log line', 5_000, () =>
    service.logLines.find((candidate) => candidate.includes(requestId)),
  );
  return JSON.parse(line);
}

const infoLevel = 30;

for (const type of ['application/grpc', 'application/grpc-web+proto']) {
  test(`the response to an unknown method is one HEADERS frame that ends the stream: ${type}`, async (t) => {
    const socket = await openSocket(baseUrl);
    t.after(() => socket.destroy());
    const headers = { ':method': 'POST', ':scheme': 'http', ':path': '/artseal.v1.FilingService/NoSuch' };
    const call = { ...headers, ':authority': 'x', 'content-type': type, te: 'trailers' };
    const body = frame(frameTypes.data, endStream, 1, enveloped(''));
    socket.write(Buffer.concat([openWindow, requestHeaders(1, call, { isLast: false }), body]));
    let received = Buffer.alloc(0);
    const ofStream = () => framesIn(received).filter(({ stream }) => stream === 1);
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk]);
      if (ofStream().some(({ isLast }) => isLast)) break;
    }
    assert.deepEqual(ofStream(), [{ type: frameTypes.headers, stream: 1, isLast: true }]);
  });
}

for (const [name, transport] of Object.entries(transports)) {
  test(`an unknown method or service is UNIMPLEMENTED, with its reason: ${name}`, async () => {
    const { provenance } = typedClients(transport(`${baseUrl}/elsewhere`, token));
    await typedError(provenance.getProvenance({}), 'NOT_FOUND', 'unimplemented');
  });
}

for (const path of ['/', '/artseal.v1.FilingService/NoSuch']) {
  test(`an unknown path is 404 with a reason to a client of plain HTTP: ${path}`, async () => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const answer = await connectAnswer(await fetch(`${baseUrl}${path}`, { method }));
      assert.deepEqual([answer.status, reasonOf(answer)], [404, 'NOT_FOUND']);
      assert.equal(JSON.parse(answer.body.toString()).code, 'unimplemented');
    }
  });
}

for (const [method, path, allow] of [
  ['GET', 'FilingService/CreateFiling', 'POST'],
  ['PUT', 'FilingService/CreateFiling', 'POST'],
  ['DELETE', 'FilingService/ListFilings', 'POST, GET'],
  ['OPTIONS', 'FilingService/ListFilings', 'POST, GET'],
] as const) {
  test(`${method} of ${path} is 405 with Allow and a reason`, async () => {
    const answer = await connectAnswer(
      await fetch(`${baseUrl}/artseal.v1.${path}`, { method, headers: bearer(token) }),
    );
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('Allow'), allow);
    assert.equal(answer.headers.get('Content-Type'), 'application/json');
    assert.equal(reasonOf(answer), 'METHOD_NOT_ALLOWED');
    assert.equal(JSON.parse(answer.body.toString()).code, 'unimplemented');
    const { level, reason, operation } = await logged(answer.headers);
    assert.deepEqual([level, reason], [infoLevel, 'METHOD_NOT_ALLOWED']);
    assert.equal(operation, `artseal.v1.${path}`);
  });
}

for (const type of ['text/plain', 'application/grpc+thrift']) {
  test(`a message of the type ${type} is 415 with a reason`, async () => {
    const headers = { 'Content-Type': type, ...bearer(token) };
    const answer = await connectAnswer(await fetch(list, { method: 'POST', headers, body: '{}' }));
    assert.deepEqual([answer.status, reasonOf(answer)], [415, 'UNSUPPORTED_MEDIA_TYPE']);
    assert.match(answer.error?.rawMessage ?? '', /Content-Type must be application\/json/);
    assert.equal((await logged(answer.headers)).level, infoLevel);
  });
}

/** Sends an empty message for a list with these headers over HTTP/1.1. */
const postList = (headers: Record<string, string>) => {
  const sent = { 'Content-Length': '2', ...bearer(token), ...headers };
  return rawRequest('POST', new URL(list).pathname, sent, '{}');
};

test('a message without a type is 415 with a reason', async () => {
  const answer = await rawAnswer(baseUrl, postList({ Host: 'x' }));
  assert.equal(answer.status, 415);
  assert.equal(answer.json.code, 'invalid_argument');
});

test('an invalid Host is rejected with a reason', async () => {
  const answer = await rawAnswer(baseUrl, postList({ Host: '[', 'Content-Type': 'application/json' }));
  assert.equal(answer.status, 400);
  assert.equal(answer.json.details[0].debug.reason, 'BAD_REQUEST_TARGET');
});

const chunked = {
  Host: 'x',
  'Content-Type': 'application/json',
  'Transfer-Encoding': 'chunked',
  ...bearer(token),
};

/** test/http/rest/connections.test.ts has all framings. */
test('a body whose end is ambiguous is rejected, and nothing after it is read', async () => {
  const path = new URL(list).pathname;
  for (const type of ['application/json', 'application/grpc-web']) {
    const headers = { ...chunked, 'Transfer-Encoding': 'gzip, chunked', 'Content-Type': type };
    const call = rawRequest('POST', path, headers, '2\r\n{}\r\n0\r\n\r\n');
    const next = rawRequest('POST', path, chunked, '2\r\n{}\r\n0\r\n\r\n');
    const { answers, closed } = await rawExchange(baseUrl, Buffer.concat([call, next]), { count: 2 });
    const [{ status, headers: received, json } = assert.fail(), ...more] = answers;
    const found = [status, received.connection, json.details[0].debug.reason];
    assert.deepEqual([found, more, closed], [[400, 'close', 'BAD_REQUEST_TARGET'], [], true]);
  }
});

for (const [what, bytes, message] of [
  ['bytes that are no HTTP', 'HELO example.org\r\n\r\n', /no request of HTTP/],
  ['headers of 20,000 bytes', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, /longer than 16 KiB/],
  ['3,000 headers', `GET / HTTP/1.1\r\n${'a:\r\n'.repeat(3_000)}\r\n`, /too many headers/],
] as const) {
  test(`bytes that HTTP/1.1 does not allow are rejected with a reason: ${what}`, async () => {
    const { status, headers, json } = await rawAnswer(baseUrl, bytes);
    assert.deepEqual([status, headers.connection, json.code], [400, 'close', 'invalid_argument']);
    assert.equal(json.details[0].debug.reason, 'BAD_REQUEST_TARGET');
    assert.match(json.message, message);
    const { level, reason } = await logged(new Headers({ 'X-Request-Id': String(headers['x-request-id']) }));
    assert.deepEqual([level, reason], [infoLevel, 'BAD_REQUEST_TARGET']);
  });
}

test('headers that arrive too slowly are rejected with a reason', async (t) => {
  const { baseUrl: slowUrl } = await openBareListener(t, () => assert.fail('No call came.'), {
    headersMs: 50,
  });
  const { status, headers, json } = await rawAnswer(slowUrl, 'GET / HTTP/1.1\r\nHost: x\r\n');
  assert.deepEqual([status, headers.connection, json.code], [504, 'close', 'deadline_exceeded']);
  assert.equal(json.details[0].debug.reason, 'TIMEOUT');
});

test('bytes after a call that are not HTTP do not become its response', async () => {
  const call = postList({ Host: 'x', 'Content-Type': 'application/json' });
  const garbage = Buffer.from('HELO example.org\r\n\r\n');
  const { answers } = await rawExchange(baseUrl, Buffer.concat([call, garbage]));
  assert.deepEqual(
    answers.filter(({ status }) => status !== 200),
    [],
  );
});

test('a method that streams both ways is rejected over HTTP/1.1, with a reason', async () => {
  const answer = await connectAnswer(
    await fetch(`${baseUrl}/${reflection}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/connect+json', ...bearer(token) },
      body: enveloped('{"listServices":""}'),
    }),
  );
  assert.deepEqual([answer.status, reasonOf(answer)], [505, 'METHOD_NOT_ALLOWED']);
  assert.match(answer.error?.rawMessage ?? '', /takes POST over HTTP\/2/);
  assert.equal(answer.headers.get('Allow'), 'POST');
  assert.equal((await logged(answer.headers)).level, infoLevel);
});

const compressed: readonly (readonly [name: string, send: RawSending, header: string, accepted: string])[] = [
  ['Connect', overConnect('application/json'), 'Content-Encoding', 'Accept-Encoding'],
  ['gRPC', overGrpc('application/grpc+json'), 'grpc-encoding', 'grpc-accept-encoding'],
  ['gRPC-Web', overGrpcWeb('application/grpc-web+json'), 'grpc-encoding', 'grpc-accept-encoding'],
];

for (const [name, send, header, accepted] of compressed) {
  // Brotli allocates a window of 16 MB or more even for a few bytes.
  for (const encoding of ['lz4', 'br']) {
    test(`the compression ${encoding} is rejected with a reason, logged as information: ${name}`, async () => {
      const call = { baseUrl, token, method: 'FilingService/ListFilings', body: '{}' };
      const answer = await send({ ...call, headers: { [header]: encoding } });
      assert.equal(reasonOf(answer), 'UNSUPPORTED_MEDIA_TYPE', String(answer.error));
      assert.match(answer.error?.rawMessage ?? '', new RegExp(`${encoding}.*gzip$`));
      assert.equal(answer.headers.get(accepted), 'gzip');
      const { level, reason } = await logged(answer.headers);
      assert.deepEqual([level, reason], [infoLevel, 'UNSUPPORTED_MEDIA_TYPE']);
    });
  }
}

const streams = ['artseal.v1.FilingService/ListFilings', 'grpc.health.v1.Health/Watch', reflection];
const whole = enveloped('{}');
const malformed = {
  'half a message': whole.subarray(0, 6),
  'a message that is no JSON': enveloped('{'),
  'a member that is not known': enveloped('{"misspelt":1}'),
};
const notOne = { 'no message': Buffer.alloc(0), 'two messages': Buffer.concat([whole, whole]) };

for (const path of streams) {
  for (const [name, body] of Object.entries({ ...malformed, ...(path === reflection ? {} : notOne) })) {
    test(`a gRPC call of ${path} with ${name} is rejected`, async () => {
      const session = connect(baseUrl);
      const request = session.request({
        ':method': 'POST',
        ':path': `/${path}`,
        'content-type': 'application/grpc+json',
        ...bearer(token),
      });
      // A call that is accepted would stay open.
      request.setTimeout(10_000, () => request.close());
      request.end(body);
      const trailers = once(request, 'trailers');
      const [headers] = await once(request, 'response');
      await buffer(request);
      const [{ 'grpc-status': status }] = await trailers;
      session.destroy();
      assert.equal(status, '3');
      const { level, reason } = await logged(
        new Headers({ 'X-Request-Id': String(headers['x-request-id']) }),
      );
      assert.equal(level, infoLevel);
      assert.ok(['VALIDATION_FAILED', 'INVALID_JSON'].includes(reason ?? ''), String(reason));
    });
  }
}

const deadlines: readonly (readonly [header: string, sent: string, kept: string])[] = [
  ['Connect-Timeout-Ms', '60000', '60000'],
  ['Connect-Timeout-Ms', '60001', '60000'],
  ['Connect-Timeout-Ms', '9999999999', '60000'],
  ['Connect-Timeout-Ms', '20', '20'],
  ['grpc-timeout', '60S', '60S'],
  ['grpc-timeout', '60000m', '60000m'],
  ['grpc-timeout', '60001m', '60000m'],
  ['grpc-timeout', '60000001u', '60000m'],
  ['grpc-timeout', '60000000u', '60000000u'],
  ['grpc-timeout', '99999999n', '99999999n'],
  ['grpc-timeout', '61S', '60000m'],
  ['grpc-timeout', '2M', '60000m'],
  ['grpc-timeout', '99999999H', '60000m'],
  ['grpc-timeout', '5S', '5S'],
];

const ways: Record<string, RawSending> = {
  'Connect-Timeout-Ms': overConnect('application/json'),
  'grpc-timeout': overGrpc('application/grpc+json'),
};

for (const [header, sent, kept] of deadlines) {
  test(`the deadline ${header}: ${sent} is read as ${kept}`, () => {
    const headers = new Headers({ [header]: sent });
    shortenDeadline(headers);
    assert.equal(headers.get(header), kept);
  });
}

test('a deadline above the maximum is accepted', async () => {
  assert.equal(deadlineMsMax, 60_000);
  for (const [header, sent] of Object.entries({ 'Connect-Timeout-Ms': '9999999999', 'grpc-timeout': '2M' })) {
    const call = { baseUrl, token, method: 'FilingService/ListFilings', body: '{}' };
    const answer = await ways[header]?.({ ...call, headers: { [header]: sent } });
    assert.equal(answer?.error, undefined);
  }
});

for (const [header, sent] of [
  ['Connect-Timeout-Ms', '-1'],
  ['grpc-timeout', '60'],
] as const) {
  test(`the malformed deadline ${header}: ${sent} is rejected`, async () => {
    const call = { baseUrl, token, method: 'FilingService/ListFilings', body: '{}' };
    const answer = await ways[header]?.({ ...call, headers: { [header]: sent } });
    assert.ok(answer);
    assert.equal(reasonOf(answer), 'VALIDATION_FAILED');
    assert.ok(answer.error?.rawMessage.includes(sent));
  });
}
