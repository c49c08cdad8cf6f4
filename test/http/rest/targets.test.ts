import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequestTarget } from '../../../src/http/rest/http-message.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { apiError, assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, type RestAnswer } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const platform = await service.platform();

/** Sends a target byte for byte, with a signature for it. */
function sendTo(target: string, method = 'GET', body = ''): Promise<RestAnswer> {
  const content =
    body === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': `${body.length}` };
  const headers = { Host: 'x', ...headersOf(platform, { method, target, body }), ...content };
  return rawAnswer(service.publicUrl, rawRequest(method, target, headers, body));
}

const provenance = '/api/v1/provenance';

const badTargets: Readonly<Record<string, readonly string[]>> = {
  'a dot segment': ['/.', '/../filing', '/..', '/%2e%2e/filing', '/%2E%2E', '/.%2e', '/%2e'],
  'an empty segment': ['//', '//x'],
  'an encoded slash or NUL': ['/a%2Fb', '/a%2fb', '/a%00', '/a?b=%00', '/x?a=b%2Fc'],
  'a double slash in the query': ['/x?a=b//c'],
  'a backslash': ['\\x', '/x?a=\\'],
  'a fragment': ['/x#y', '/x?a=1#y'],
  'a bad escape': ['/%', '/%4', '/%zz', '/x?a=%'],
  'escapes that are not UTF-8': ['/%C3%28', '/%C0%AF', '/%ED%A0%80', '/%E9%BD'],
  'a byte beyond ASCII': ['/\u00e9', `/${Buffer.from('齐').toString('latin1')}`],
  'a space or control character': ['/a b', '/a\u0001', '/a\u007f', '/a\tb'],
};
const otherForms = [
  ...['http://localhost/api/v1/provenance/x', 'http://example.com/api/v1/filing', '*', 'api/v1/filing'],
  ...['?a=1', '//api/v1/filing', '/api//v1/filing', `/a?${'x'.repeat(2_046)}`],
];

for (const [what, endings] of Object.entries(badTargets)) {
  test(`a target is rejected: ${what}`, () => {
    for (const ending of endings)
      assert.throws(() => parseRequestTarget(provenance + ending), apiError('BAD_REQUEST_TARGET'), ending);
  });
}

test('a target that is not in origin form, or longer than 2,048 bytes, is rejected', () => {
  for (const target of otherForms)
    assert.throws(() => parseRequestTarget(target), apiError('BAD_REQUEST_TARGET'), target);
  const tooLong = apiError('BAD_REQUEST_TARGET', /2048 bytes/);
  assert.throws(() => parseRequestTarget(`/${'x'.repeat(2_048)}`), tooLong);
});

test('a request with a bad target gets 400, and stores nothing', async () => {
  const before = { ...ledger.holdings(), nonces: ledger.nonces() };
  for (const target of [
    ...[`${provenance}/../filing`, '/api//v1/filing', 'http://example.com/api/v1/filing', '*'],
    ...['x#y', '\u00e9', 'a b', 'a\u0001', 'a\tb'].map((segment) => `${provenance}/${segment}`),
  ]) {
    assertRejected(await sendTo(target), 400, 'BAD_REQUEST_TARGET');
  }
  assertRejected(await sendTo('/api/v1/../x'), 400, 'BAD_REQUEST_TARGET', /dot segments/);
  assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
});

test('each segment is decoded once: %69 is i, and %2569 stays %69', async () => {
  const filed = await sendTo('/api/v1/fil%69ng', 'POST', JSON.stringify(artwork));
  assert.equal(filed.status, 200, filed.text);
  const { filingNo } = filed.json;
  const asked = await sendTo(`${provenance}/${filingNo.replace('-', '%2D')}`);
  assert.equal(asked.status, 200, asked.text);
  assert.equal(asked.json.filingNo, filingNo);
  assertRejected(await sendTo('/api/v1/fil%2569ng', 'POST', '{}'), 404, 'NOT_FOUND');
  assertRejected(await sendTo(`${provenance}/${filingNo.replace('-', '%252D')}`), 404, 'FILING_NOT_FOUND');
});

test('a parameter without a name has its own message, next to those of other fields', async () => {
  const lists = '/api/v1/filing';
  for (const query of ['?&', '?pageSize=2&', '?&pageSize=2', '?pageSize=2&&caller=a', '?=1']) {
    const answer = await sendTo(lists + query);
    assertRejected(
      answer,
      400,
      'VALIDATION_FAILED',
      /^the query has a parameter without a name: look for a stray & or \?/,
    );
    assert.equal(answer.json.message.match(/without a name/g).length, 1);
  }
  assertRejected(await sendTo(`${lists}?&a=1`), 400, 'VALIDATION_FAILED', /without a name.*; a is not part/);
  for (const query of ['?', '?pageSize=2']) assert.equal((await sendTo(lists + query)).status, 200);
});

test('a target is parsed into decoded segments and parameters', () => {
  assert.deepEqual(parseRequestTarget('/a/%E9%BD%90/c%20d?x=%2B+1&y&z=1=2&=w'), {
    segments: ['a', '齐', 'c d'],
    query: [
      ['x', '++1'],
      ['y', ''],
      ['z', '1=2'],
      ['', 'w'],
    ],
  });
  assert.deepEqual(parseRequestTarget('/'), { segments: [''], query: [] });
  assert.deepEqual(parseRequestTarget('/a/?'), { segments: ['a', ''], query: [] });
  assert.deepEqual(parseRequestTarget('/...').segments, ['...']);
  assert.deepEqual(parseRequestTarget('/a%3Fb=1'), { segments: ['a?b=1'], query: [] });
  assert.equal(parseRequestTarget(`/${'x'.repeat(2_047)}`).segments[0]?.length, 2_047);
  assert.deepEqual(parseRequestTarget('/a%5Cb').segments, ['a\\b']);
});

test('any target is either parsed or rejected as a bad target', () => {
  const pieces = [...'/%2fF.?#\\&=a\0\xff', '%2e', '%2F', '%00', '🖌'];
  const badTarget = apiError('BAD_REQUEST_TARGET');
  const targets = pieces.flatMap((one) =>
    pieces.flatMap((two) => pieces.map((three) => `/${one}${two}${three}`)),
  );
  for (const target of targets) {
    try {
      const { segments } = parseRequestTarget(target);
      assert.ok(segments.every((segment) => !['.', '..'].includes(segment) && !segment.includes('/')));
    } catch (error) {
      badTarget(error);
    }
  }
});
