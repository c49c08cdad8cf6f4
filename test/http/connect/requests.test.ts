import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DescMessage, fromJsonString, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { ListEscrowsRequestSchema } from '../../../gen/artseal/v1/escrow_pb.ts';
import {
  CreateFilingRequestSchema,
  FilingService,
  GetFilingRequestSchema,
} from '../../../gen/artseal/v1/filing_pb.ts';
import type { ServiceDependencies } from '../../../src/api/services/dependencies.ts';
import { createFilingService } from '../../../src/api/services/filing-service.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { rejectViolations } from '../../../src/domain/violation.ts';
import { checkGetQuery, strictProtoJson } from '../../../src/http/connect/requests.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { apiError } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { ledger as internal } from '../../support/tokens.ts';
import { bearer } from '../../support/typed-clients.ts';
import {
  connectAnswer,
  jsonOf,
  overConnect,
  overGrpc,
  overGrpcWeb,
  type RawSending,
  reasonOf,
} from './raw-call.ts';

/** Reads a message as the Connect library does with the options of this service. */
function read<D extends DescMessage>(schema: D, body: string | Uint8Array): MessageShape<D> {
  const { textDecoder, ignoreUnknownFields } = strictProtoJson(schema);
  return fromJsonString(schema, textDecoder.decode(Buffer.from(body)), { ignoreUnknownFields });
}

const { createFiling } = FilingService.method;
const operation =
  createFilingService({} as ServiceDependencies).operations.get(createFiling) ?? assert.fail();

function readFiling(body: string | Uint8Array): MessageShape<typeof CreateFilingRequestSchema> {
  const message = read(CreateFilingRequestSchema, body);
  rejectViolations(operation.check?.(message, internal) ?? []);
  return message;
}

/** The artwork as JSON with another value for `member`, or with further members. */
function filing({ member = '', value = '', more = '' }: { member?: string; value?: string; more?: string }) {
  const members = Object.entries(artwork)
    .filter(([name]) => name !== member)
    .map(([name, written]) => `${JSON.stringify(name)}:${JSON.stringify(written)}`);
  return `{${[...members, ...(member ? [`"${member}":${value}`] : []), ...(more ? [more] : [])].join(',')}}`;
}

/** Invalid members of the artwork, and the message of each. test/lib/strict-json.test.ts has all broken JSON. */
const invalid: readonly (readonly [member: string, value: string, message: RegExp])[] = [
  ['author', '"Qi \\ud800 Baishi"', /^author/],
  ['author', '1', /^author must be a string$/],
  ['author', '["a"]', /^author must be a string$/],
  ['author', 'null', /^author/],
  ['price', '9007199254740993', /^price must be sent as a string/],
  ['price', '1e400', /^price/],
  ['price', '"9007199254740993"', /^price must be a whole number .*from 0 to 9007199254740991/],
  ['price', '"0x10"', /^price must be a whole number in decimal/],
  ['price', '""', /^price must be a whole number/],
  ['price', '1.5', /^price must be a whole number/],
  ['price', '"1.5"', /^price must be a whole number/],
  ['price', '{}', /^price must be a whole number$/],
  ['price', 'true', /^price must be a whole number$/],
  ['price', 'null', /^price is required/],
  ['Author', '"x"', /^Author is not part/],
];

for (const [member, value, message] of invalid) {
  test(`the ${member} ${value} is rejected`, () => {
    assert.throws(() => readFiling(filing({ member, value })), apiError('VALIDATION_FAILED', message));
  });
}

test('prices are read as JSON numbers and as strings of digits', () => {
  for (const price of ['9007199254740991', '"9007199254740991"', '1e3', '1000.0', '"1000"', '0']) {
    const message = readFiling(filing({ member: 'price', value: price }));
    assert.equal(message.price, BigInt(Number(JSON.parse(price))), price);
  }
});

test('member names are read with escapes, and in both spellings, but only once', () => {
  const escaped = filing({ member: 'author', value: '"x"' }).replace('author', '\\u0061uth\\u006Fr');
  assert.equal(readFiling(escaped).author, 'x');
  for (const name of ['filingNo', 'filing_no']) {
    assert.equal(read(GetFilingRequestSchema, JSON.stringify({ [name]: 'AS-1' })).filingNo, 'AS-1');
  }
  assert.throws(() => read(GetFilingRequestSchema, '{"filingNo":"AS-1","filing_no":"AS-1"}'));
});

test('null means that a member is absent, and enums are read by name only', () => {
  const list = (body: string) => read(ListEscrowsRequestSchema, body);
  assert.equal(list('{"pageSize":null,"state":null}').pageSize, 0);
  assert.equal(list('{"state":"FROZEN","pageSize":5}').pageSize, 5);
  for (const [body, message] of [
    ['{"state":"frozen"}', /^state must be UNPAID or FROZEN or /],
    ['{"state":true}', /^state must be UNPAID or FROZEN or /],
    ['{"state":[]}', /^state must be UNPAID or FROZEN or /],
    ['{"state":1.0000000000000000001}', /^state must be a whole number$/],
    ['{"pageSize":"0x10"}', /^pageSize must be a whole number/],
  ] as const) {
    assert.throws(() => list(body), apiError('VALIDATION_FAILED', message), body);
  }
});

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const call = { baseUrl: service.internalUrl, token: await service.token() };
const ways: Record<string, RawSending> = {
  Connect: overConnect('application/json'),
  gRPC: overGrpc('application/grpc+json'),
  'gRPC-Web': overGrpcWeb('application/grpc-web+json'),
};

for (const [way, send] of Object.entries(ways)) {
  test(`JSON is read strictly, and a rejected call stores nothing: ${way}`, async () => {
    const before = ledger.holdings();
    for (const [body, reason] of [
      [filing({ more: '"author":"x"' }), 'INVALID_JSON'],
      [filing({ member: 'price', value: '9007199254740993' }), 'VALIDATION_FAILED'],
      ['{"filingNo":"AS-1","filing_no":"AS-1"}', 'VALIDATION_FAILED'],
    ] as const) {
      const answer = await send({ ...call, method: 'FilingService/CreateFiling', body });
      assert.equal(reasonOf(answer), reason, String(answer.error));
    }
    assert.deepEqual(ledger.holdings(), before);
    const accepted = filing({ member: 'price', value: '"9007199254740991"' });
    const filed = await send({ ...call, method: 'FilingService/CreateFiling', body: accepted });
    const body = JSON.stringify({ filingNo: jsonOf(filed).filingNo });
    const found = await send({ ...call, method: 'FilingService/GetFiling', body });
    // ProtoJSON writes int64 as a string.
    assert.equal(jsonOf(found).filing.price, '9007199254740991');
  });
}

const binaryWays: Record<string, RawSending> = {
  Connect: overConnect('application/proto'),
  gRPC: overGrpc('application/grpc+proto'),
  'gRPC-Web': overGrpcWeb('application/grpc-web+proto'),
};

for (const [way, send] of Object.entries(binaryWays)) {
  test(`a binary message with a byte that is not UTF-8 is rejected: ${way}`, async () => {
    const { $typeName, ...fields } = { $typeName: CreateFilingRequestSchema.typeName, ...artwork };
    const message = { $typeName, ...fields, author: 'Qi ~ Baishi', price: 5n, attachments: [] };
    const body = toBinary(CreateFilingRequestSchema, message as never);
    body[Buffer.from(body).indexOf('~')] = 0xff;
    const before = ledger.holdings();
    const answer = await send({ ...call, method: 'FilingService/CreateFiling', body });
    assert.equal(reasonOf(answer), 'VALIDATION_FAILED', String(answer.error));
    assert.match(answer.error?.rawMessage ?? '', /^The message cannot be decoded: .*UTF-8/);
    assert.deepEqual(ledger.holdings(), before);
  });
}

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
    [json, 'BAD_REQUEST_TARGET', /message is required/],
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
