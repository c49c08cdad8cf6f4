import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reason } from '../../../src/domain/reason.ts';
import { checkGetQuery } from '../../../src/http/connect/requests.ts';
import { fileScope } from '../../support/file-scope.ts';
import { apiError } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { bearer } from '../../support/typed-clients.ts';
import { connectAnswer, jsonOf, overConnect, reasonOf } from './raw-call.ts';

const service = await startService(fileScope);
const token = await service.token();
const baseUrl = service.internalUrl;
const json = 'connect=v1&encoding=json';
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64url');

/** Calls ListFilings with GET and this query. */
async function get(query: string, headers = bearer(token)) {
  return connectAnswer(await fetch(`${baseUrl}/artseal.v1.FilingService/ListFilings?${query}`, { headers }));
}

test('GET returns what POST returns', async () => {
  const post = (method: string, body: string) =>
    overConnect('application/json')({ baseUrl, token, method: `FilingService/${method}`, body });
  await post('CreateFiling', JSON.stringify(artwork));
  const body = '{"pageSize":1}';
  const { filings } = jsonOf(await post('ListFilings', body));
  assert.equal(filings.length, 1);
  for (const query of [
    `${json}&message=${encodeURIComponent(body)}`,
    `${json}&base64=1&message=${base64(body)}`,
    `message=${encodeURIComponent(body)}&encoding=json`,
  ]) {
    assert.deepEqual(jsonOf(await get(query)).filings, filings);
  }
  assert.equal((await get('connect=v1&encoding=proto&base64=1&message=')).error, undefined);
});

test('GET needs the token in its header', async () => {
  assert.equal(reasonOf(await get(`${json}&message={}`, bearer(`${token}x`))), 'AUTH_HEADER_INVALID');
});

test('GET rejects a bad query, a bad message and an unknown compression', async () => {
  for (const [query, reason, message] of [
    [`${json}&message={}&message={}`, 'BAD_REQUEST_TARGET', /message is repeated/],
    [`${json}&message=${encodeURIComponent('{"pageSize":1,"pageSize":2}')}`, 'INVALID_JSON', /repeated/],
    [`${json}&compression=lz4&message={}`, 'UNSUPPORTED_MEDIA_TYPE', /gzip/],
  ] as const) {
    const answer = await get(query);
    assert.equal(reasonOf(answer), reason, String(answer.error));
    assert.match(answer.error?.rawMessage ?? '', message);
  }
});

const queries: readonly (readonly [query: string, reason: Reason, message: RegExp])[] = [
  [`${json}&message=%7B%22pageToken%22:%22%FF%22%7D`, 'BAD_REQUEST_TARGET', /message must be UTF-8/],
  [json, 'BAD_REQUEST_TARGET', /message is required/],
  [`${json}&message={}&message={}`, 'BAD_REQUEST_TARGET', /message is repeated/],
  [`${json}&message={}&pageSize=1`, 'BAD_REQUEST_TARGET', /pageSize; it takes connect/],
  [`${json}&&message={}`, 'BAD_REQUEST_TARGET', /has a parameter without a name; it takes connect/],
  [`${json}&message=%7`, 'BAD_REQUEST_TARGET', /message must be UTF-8/],
  [`${json}&base64=1&message=!`, 'BAD_REQUEST_TARGET', /base64/],
  [`${json}&base64=0&message={}`, 'BAD_REQUEST_TARGET', /base64 must be 1/],
  ['connect=v2&encoding=json&message={}', 'BAD_REQUEST_TARGET', /connect must be v1/],
  ['connect=v1&encoding=xml&message={}', 'UNSUPPORTED_MEDIA_TYPE', /encoding must be json or proto/],
  ['connect=v1&message={}', 'UNSUPPORTED_MEDIA_TYPE', /encoding must be json or proto/],
  [`${json}&message=${'x'.repeat(4_096)}`, 'BAD_REQUEST_TARGET', /at most 4096 bytes.*POST/],
];

for (const [query, reason, message] of queries) {
  test(`the query ${query.slice(0, 80)} is rejected with ${reason}`, () => {
    assert.throws(
      () => checkGetQuery(`/artseal.v1.FilingService/ListFilings?${query}`),
      apiError(reason, message),
    );
  });
}
