import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { askProvenance, fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, send } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const platform = await service.platform();
const target = '/api/v1/filing';
const body = JSON.stringify(artwork);
const bodyBytesMax = 65_536;

const notOneObject: readonly (readonly [what: string, body: string | Uint8Array])[] = [
  ['nothing', ''],
  ['white space', ' \n'],
  ['an array', '[]'],
  ['an array of the artwork', `[${body}]`],
  ['null', 'null'],
  ['true', 'true'],
  ['a string', '"x"'],
  ['a number', '1'],
  ['NaN', 'NaN'],
  ['two objects', `${body}${body}`],
  ['an object and a comma', `${body},`],
  ['an object and a letter', `${body}x`],
  ['an object and NUL', `${body}\0`],
  ['an object cut short', body.slice(0, -1)],
  ['a string cut short', body.slice(0, 20)],
  ['an open object', '{'],
  ['a trailing comma', body.replace('}', ',}')],
  ['single quotes', "{'author':'x'}"],
  ['a name without quotes', '{author:"x"}'],
  ['a comment', `/* */${body}`],
  ['a leading zero', body.replace('128000000', '0128000000')],
  ['a plus sign', body.replace('128000000', '+1')],
  ['a hexadecimal number', body.replace('128000000', '0x10')],
  ['a number without its fraction', body.replace('128000000', '1.')],
  ['a number without its exponent', body.replace('128000000', '1e')],
  ['an unescaped line feed in a string', body.replace('Qi Baishi', 'Qi\nBaishi')],
  ['an unknown escape', body.replace('Qi Baishi', 'Qi \\x42aishi')],
  ['a broken escape', body.replace('Qi Baishi', '\\u12G4')],
  ['a no-break space between members', body.replace(',', ',\u00a0')],
  ['a byte order mark', `\ufeff${body}`],
  ['UTF-16', Buffer.from(body, 'utf16le')],
  ['a byte that is not UTF-8', Buffer.from(body.replace('Qi', 'Q\u00ef'), 'latin1')],
  ['an overlong encoding', Buffer.from(body.replace('Qi', '\u00c0\u00af'), 'latin1')],
  ['a surrogate in UTF-8 bytes', Buffer.from(body.replace('Qi', '\u00ed\u00a0\u0080'), 'latin1')],
  ['a character cut short', Buffer.from(body.replace('Qi', '\u00e9\u00bd'), 'latin1')],
  ['arrays 10,000 deep', '['.repeat(10_000) + ']'.repeat(10_000)],
  ['objects 10,000 deep', '{"a":'.repeat(10_000)],
  ['a member 10,000 deep', body.replace('"Qi Baishi"', `${'['.repeat(10_000)}${']'.repeat(10_000)}`)],
  ['form data', 'author=x&era=y'],
];

for (const [what, sent] of notOneObject) {
  test(`a body is refused and files nothing: ${what}`, async () => {
    const before = ledger.holdings();
    assertRefused(await fileArtwork(service, platform, { body: sent }), 400, 'INVALID_JSON', /body/);
    assert.deepEqual(ledger.holdings(), before);
  });
}

const repeated: readonly (readonly [what: string, body: string, name: RegExp])[] = [
  ['with another value', `{"price":1,${body.slice(1)}`, /price/],
  ['with the same value', body.replace('}', ',"author":"Qi Baishi"}'), /author/],
  ['spelt with an escape', body.replace('}', ',"pr\\u0069ce":1}'), /price/],
  ['unknown', body.replace('}', ',"x":1,"x":2}'), /x/],
  ['inside another', body.replace('"Qi Baishi"', '{"a":1,"a":2}'), /a/],
];

for (const [what, sent, name] of repeated) {
  test(`a repeated member is refused by name and files nothing: ${what}`, async () => {
    const before = ledger.holdings();
    assertRefused(
      await fileArtwork(service, platform, { body: sent }),
      400,
      'INVALID_JSON',
      /repeated/,
      name,
    );
    assert.deepEqual(ledger.holdings(), before);
  });
}

test('white space around and between, escapes and any order of members are read', async () => {
  const reversed = JSON.stringify(Object.fromEntries(Object.entries(artwork).reverse()), undefined, '\t');
  for (const sent of [` \r\n\t${body}\r\n`, reversed, body.replace('author', '\\u0061uthor')]) {
    assert.equal((await fileArtwork(service, platform, { body: sent })).status, 200);
  }
});

test('a body that is refused is never shown in the message', async () => {
  const answer = await fileArtwork(service, platform, { body: '{"author":"confidential' });
  assertRefused(answer, 400, 'INVALID_JSON');
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

test('a body of 65,536 bytes is read, whole or in chunks', async () => {
  assert.equal((await fileArtwork(service, platform, { body: fits })).status, 200);
  assert.equal((await rawAnswer(service.publicUrl, chunked(fits, [1, 65_000, 535]))).status, 200);
});

test('the bound counts bytes, not characters', async () => {
  const han = JSON.stringify({ ...artwork, condition: '石'.repeat(22_000) });
  assertRefused(await fileArtwork(service, platform, { body: han }), 413, 'BODY_TOO_LARGE', /65536 bytes/);
});

/** Asserts that a request is answered with 413 at once, on a connection that ends with it. */
async function assertTooLarge(bytes: Uint8Array): Promise<void> {
  const before = { ...ledger.holdings(), nonces: ledger.nonces() };
  const answer = await rawAnswer(service.publicUrl, bytes);
  assertRefused(answer, 413, 'BODY_TOO_LARGE', /65536 bytes/);
  assert.equal(answer.headers.connection, 'close');
  assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
}

test('a body of 65,537 bytes is refused and ends the connection', async () => {
  const headers = {
    Host: 'x',
    'Content-Length': '65537',
    ...headersOf(platform, { target, body: tooLarge }),
  };
  await assertTooLarge(rawRequest('POST', target, headers, tooLarge));
});

test('a body announced as too large is refused before it comes', async () => {
  for (const length of ['65537', '9007199254740993']) {
    const headers = {
      Host: 'x',
      'Content-Length': length,
      ...headersOf(platform, { target, body: tooLarge }),
    };
    await assertTooLarge(rawRequest('POST', target, headers));
  }
});

test('a body in chunks is refused as soon as it is too large, though it goes on', async () => {
  await assertTooLarge(chunked(tooLarge, [65_536, 1], false));
});

test('a body in chunks that is too large and complete is refused and ends the connection', async () => {
  await assertTooLarge(chunked(tooLarge, [65_537]));
  await assertTooLarge(chunked(tooLarge, [30_000, 30_000, 5_537]));
});

const mediaTypes: readonly (readonly [contentType: string | string[] | undefined, allowed: boolean])[] = [
  ['application/json', true],
  ['application/json; charset=utf-8', true],
  ['application/json;charset=UTF-8', true],
  ['Application/JSON ; Charset="utf-8"', true],
  [undefined, false],
  ['', false],
  ['text/plain', false],
  ['text/json', false],
  ['application/jsonp', false],
  ['application/json-patch+json', false],
  ['application/problem+json', false],
  ['application/x-www-form-urlencoded', false],
  ['application/json; charset=utf-16', false],
  ['application/json; charset=latin1', false],
  ['application/json; charset=utf-8; charset=utf-16', false],
  ['application/json, text/plain', false],
  [['application/json', 'application/json'], false],
  [['application/json', 'text/plain'], false],
];

for (const [contentType, allowed] of mediaTypes) {
  test(`the content type ${JSON.stringify(contentType)} is ${allowed ? 'taken' : 'refused'}`, async () => {
    const before = ledger.holdings();
    const answer = await fileArtwork(service, platform, { headers: { 'Content-Type': contentType } });
    if (allowed) {
      assert.equal(answer.status, 200, answer.text);
    } else {
      assertRefused(answer, 415, 'UNSUPPORTED_MEDIA_TYPE', /Content-Type/, /application\/json/);
      assert.deepEqual(ledger.holdings(), before);
    }
  });
}

for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x']) {
  test(`a body with the content encoding ${encoding} is refused`, async () => {
    const headers = { 'Content-Encoding': encoding };
    const answer = await fileArtwork(service, platform, { body: gzipSync(body), headers });
    assertRefused(answer, 415, 'UNSUPPORTED_MEDIA_TYPE', /Content-Encoding/);
  });
}

test('the content encoding identity is none', async () => {
  for (const encoding of ['identity', 'Identity']) {
    const answer = await fileArtwork(service, platform, { headers: { 'Content-Encoding': encoding } });
    assert.equal(answer.status, 200, answer.text);
  }
});

test('a query needs no content type, and has no body', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  assert.equal((await askProvenance(service, platform, filingNo)).status, 200);
  const request = { method: 'GET', target: `/api/v1/provenance/${filingNo}`, body: '{}' };
  const headers = { Host: 'x', 'Content-Length': '2', ...headersOf(platform, request) };
  const answer = await rawAnswer(service.publicUrl, rawRequest('GET', request.target, headers, '{}'));
  assertRefused(answer, 400, 'VALIDATION_FAILED', /body must be empty/);
});

const withoutMembers = ['release', 'refund'].map((verb) => `/api/v1/escrow/ES-2026-0000/${verb}`);

for (const target of withoutMembers) {
  const call = (sent: object) => send(service.publicUrl, platform, { method: 'POST', target, ...sent });

  test(`POST ${target} takes no body, or an empty object`, async () => {
    const headers = { 'Content-Type': 'application/json; charset=utf-8' };
    for (const sent of [{}, { body: '' }, { body: '{}' }, { body: '\r\n { }\t', headers }]) {
      assertRefused(await call(sent), 404, 'ESCROW_NOT_FOUND');
    }
    const untyped = { body: '', headers: { 'Content-Type': 'text/plain' } };
    assertRefused(await call(untyped), 404, 'ESCROW_NOT_FOUND');
  });

  test(`POST ${target} refuses a body that says anything`, async () => {
    const invalid = notOneObject.filter(([, sent]) => sent !== '');
    for (const [, sent] of invalid) assertRefused(await call({ body: sent }), 400, 'INVALID_JSON');
    const members = await call({ body: '{"escrowId":"ES-2026-0000","reason":null}' });
    const named = [/^escrowId is not part of this request/, /reason is not part of this request/];
    assertRefused(members, 400, 'VALIDATION_FAILED', ...named);
    for (const type of [undefined, 'text/plain', 'application/x-www-form-urlencoded']) {
      const answer = await call({ body: '{}', headers: { 'Content-Type': type } });
      assertRefused(answer, 415, 'UNSUPPORTED_MEDIA_TYPE', /Content-Type/);
    }
    const encoded = await call({ body: gzipSync('{}'), headers: { 'Content-Encoding': 'gzip' } });
    assertRefused(encoded, 415, 'UNSUPPORTED_MEDIA_TYPE', /Content-Encoding/);
  });
}

test('an announced body of no bytes is no body', async () => {
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const headers = { 'Content-Length': '0', 'Content-Type': 'application/json' };
  assert.equal(
    (await send(service.publicUrl, platform, { target: `/api/v1/provenance/${filingNo}`, headers })).status,
    200,
  );
});
