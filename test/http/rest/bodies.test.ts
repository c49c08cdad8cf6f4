import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { checkMediaType } from '../../../src/http/rest/http-message.ts';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { apiError, assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, send } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const platform = await service.platform();
const target = '/api/v1/filing';
const body = JSON.stringify(artwork);
const bodyBytesMax = 65_536;

/** test/lib/strict-json.test.ts has all cases. */
const badBodies: readonly (readonly [body: string | Uint8Array, message: RegExp])[] = [
  ['[]', /body .*one JSON object/],
  [body.slice(0, -1), /ends too early/],
  [`${body}${body}`, /broken at position/],
  [Buffer.from(body.replace('Qi', 'Q\u00ef'), 'latin1'), /UTF-8/],
  [`{"price":1,${body.slice(1)}`, /member price is repeated/],
];

test('the error never shows the body', async () => {
  const answer = await fileArtwork(service, platform, { body: '{"author":"confidential' });
  assertRejected(answer, 400, 'INVALID_JSON');
  assert.doesNotMatch(answer.json.message, /confidential/);
});

/** The bytes of a signed filing whose body is sent in chunks. */
function chunked(sent: string, sizes: readonly number[], complete = true): Uint8Array {
  const headers = {
    Host: 'x',
    'Transfer-Encoding': 'chunked',
    ...headersOf(platform, { target, body: sent }),
  };
  let at = 0;
  const chunks = sizes.map((size) => {
    const chunk = sent.slice(at, at + size);
    at += size;
    return `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
  });
  return rawRequest('POST', target, headers, `${chunks.join('')}${complete ? '0\r\n\r\n' : ''}`);
}

const fits = body.padEnd(bodyBytesMax, ' ');
const tooLarge = body.padEnd(bodyBytesMax + 1, ' ');

test('a body of 65,536 bytes is accepted, whole or in chunks', async () => {
  assert.equal((await fileArtwork(service, platform, { body: fits })).status, 200);
  assert.equal((await rawAnswer(service.publicUrl, chunked(fits, [1, 65_000, 535]))).status, 200);
});

test('the limit counts bytes, not characters', async () => {
  const han = JSON.stringify({ ...artwork, condition: '石'.repeat(22_000) });
  assertRejected(await fileArtwork(service, platform, { body: han }), 413, 'BODY_TOO_LARGE', /65536 bytes/);
});

const announced = (length: string, sent?: string) => {
  const headers = { Host: 'x', 'Content-Length': length, ...headersOf(platform, { target, body: tooLarge }) };
  return rawRequest('POST', target, headers, sent);
};

for (const [what, bytes] of Object.entries({
  'of 65,537 bytes': () => announced('65537', tooLarge),
  'with a Content-Length of 65,537, before it arrives': () => announced('65537'),
  'with a Content-Length beyond all integers, before it arrives': () => announced('9007199254740993'),
  'in chunks, before it ends': () => chunked(tooLarge, [65_536, 1], false),
  'in one chunk': () => chunked(tooLarge, [65_537]),
  'in complete chunks': () => chunked(tooLarge, [30_000, 30_000, 5_537]),
})) {
  test(`a body is too large and ends the connection: ${what}`, async () => {
    const before = { ...ledger.holdings(), nonces: ledger.nonces() };
    const answer = await rawAnswer(service.publicUrl, bytes());
    assertRejected(answer, 413, 'BODY_TOO_LARGE', /65536 bytes/);
    assert.equal(answer.headers.connection, 'close');
    assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
  });
}

const goodTypes = [
  ...['application/json', 'application/json; charset=utf-8', 'application/json;charset=UTF-8'],
  'Application/JSON ; Charset="utf-8"',
];
const badTypes: readonly (string | readonly string[] | undefined)[] = [
  ...[undefined, '', 'text/plain', 'text/json', 'application/jsonp', 'application/json-patch+json'],
  ...['application/problem+json', 'application/x-www-form-urlencoded', 'application/json, text/plain'],
  ...['application/json; charset=utf-16', 'application/json; charset=utf-8; charset=utf-16'],
  ['application/json', 'application/json'],
  ['application/json', 'text/plain'],
];

/** A request with these values of Content-Type and Content-Encoding. */
function requestWith(
  contentType: string | readonly string[] | undefined,
  encoding?: string,
): IncomingMessage {
  const types = [contentType ?? []].flat().flatMap((value) => ['Content-Type', value]);
  const rawHeaders = [...types, ...(encoding === undefined ? [] : ['content-encoding', encoding])];
  return { rawHeaders } as IncomingMessage;
}

test('the content type is JSON in UTF-8, sent once', () => {
  for (const type of goodTypes) checkMediaType(requestWith(type));
  const error = apiError('UNSUPPORTED_MEDIA_TYPE', /Content-Type .*application\/json/);
  for (const type of badTypes) assert.throws(() => checkMediaType(requestWith(type)), error, String(type));
});

test('every content encoding except identity is rejected', () => {
  for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x']) {
    const check = () => checkMediaType(requestWith('application/json', encoding));
    assert.throws(check, apiError('UNSUPPORTED_MEDIA_TYPE', /Content-Encoding/));
  }
  for (const encoding of ['identity', 'Identity']) checkMediaType(requestWith('application/json', encoding));
});

test('a read needs no content type, and has no body', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  assert.equal((await askProvenance(service, platform, filingNo)).status, 200);
  const request = { method: 'GET', target: `/api/v1/provenance/${filingNo}`, body: '{}' };
  const headers = { Host: 'x', 'Content-Length': '2', ...headersOf(platform, request) };
  const answer = await rawAnswer(service.publicUrl, rawRequest('GET', request.target, headers, '{}'));
  assertRejected(answer, 400, 'VALIDATION_FAILED', /body must be empty/);
});

const call = (sent: object) =>
  send(service.publicUrl, platform, {
    method: 'POST',
    target: '/api/v1/escrow/ES-2026-0000/release',
    ...sent,
  });

test('an operation without members takes no body, or an empty object', async () => {
  const headers = { 'Content-Type': 'application/json; charset=utf-8' };
  const untyped = { body: '', headers: { 'Content-Type': 'text/plain' } };
  for (const sent of [{}, { body: '' }, { body: '{}' }, { body: '\r\n { }\t', headers }, untyped]) {
    assertRejected(await call(sent), 404, 'ESCROW_NOT_FOUND');
  }
});

test('an operation without members rejects any other body', async () => {
  for (const [sent, message] of badBodies)
    assertRejected(await call({ body: sent }), 400, 'INVALID_JSON', message);
  const members = await call({ body: '{"escrowId":"ES-2026-0000","reason":null}' });
  const named = [/^escrowId is not part of this request/, /reason is not part of this request/];
  assertRejected(members, 400, 'VALIDATION_FAILED', ...named);
  for (const type of [undefined, 'text/plain']) {
    const answer = await call({ body: '{}', headers: { 'Content-Type': type } });
    assertRejected(answer, 415, 'UNSUPPORTED_MEDIA_TYPE', /Content-Type/);
  }
});

test('a body with Content-Length 0 is no body', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const headers = { 'Content-Length': '0', 'Content-Type': 'application/json' };
  assert.equal(
    (await send(service.publicUrl, platform, { target: `/api/v1/provenance/${filingNo}`, headers })).status,
    200,
  );
});
