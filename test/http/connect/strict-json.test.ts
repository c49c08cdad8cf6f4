import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toBinary } from '@bufbuild/protobuf';
import { CreateFilingRequestSchema } from '../../../gen/artseal/v1/filing_pb.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
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

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const token = await service.token();
const baseUrl = service.internalUrl;

const ways: Record<string, RawSending> = {
  Connect: overConnect('application/json'),
  gRPC: overGrpc('application/grpc+json'),
  'gRPC-Web': overGrpcWeb('application/grpc-web+json'),
};

/** The artwork as JSON with one of its members written otherwise, or with more text among them. */
function filing({ member = '', value = '', more = '' }: { member?: string; value?: string; more?: string }) {
  const members = Object.entries(artwork)
    .filter(([name]) => name !== member)
    .map(([name, written]) => `${JSON.stringify(name)}:${JSON.stringify(written)}`);
  return `{${[...members, ...(member ? [`"${member}":${value}`] : []), ...(more ? [more] : [])].join(',')}}`;
}

const rawByte = Buffer.concat([
  Buffer.from('{"author":"Qi '),
  Buffer.from([0xff]),
  Buffer.from(` Baishi",${filing({ member: 'author' }).slice(1)}`),
]);

/** What is no price, and what is said of it. */
const notPrices: readonly (readonly [name: string, value: string, message: RegExp])[] = [
  ['an integer that would be rounded', '9007199254740993', /^price must be sent as a string/],
  ['an integer beyond int64', '1e400', /^price/],
  [
    'an exact integer above the bound',
    '"9007199254740993"',
    /^price must be a whole number .*from 0 to 9007199254740991/,
  ],
  ['a hexadecimal number', '"0x10"', /^price must be a whole number in decimal/],
  ['a binary number', '"0b1"', /^price must be a whole number/],
  ['a number in spaces', '" 5 "', /^price must be a whole number/],
  ['an empty number', '""', /^price must be a whole number/],
  ['a fraction', '1.5', /^price must be a whole number/],
  ['a fraction that a double loses', '9007199254740990.6', /^price must be a whole number/],
  ['a fraction as a string', '"1.5"', /^price must be a whole number/],
  ['an object in place of a number', '{}', /^price must be a whole number$/],
  ['true in place of a number', 'true', /^price must be a whole number$/],
  ['null for the price', 'null', /^price is required/],
];

type Refused = readonly [name: string, body: string | Uint8Array, reason: string, message: RegExp];
const refused: readonly Refused[] = [
  ['a byte that is not UTF-8', rawByte, 'INVALID_JSON', /UTF-8/],
  ['a byte order mark', `\ufeff${filing({})}`, 'INVALID_JSON', /begins with a byte order mark/],
  ['no bytes', '', 'INVALID_JSON', /ends too early/],
  ['an array', '[]', 'INVALID_JSON', /one JSON object/],
  ['a second value', `${filing({})}{}`, 'INVALID_JSON', /broken/],
  ['deep nesting', `{"author":${'['.repeat(1_000)}`, 'INVALID_JSON', /deeper than/],
  ['a repeated member', filing({ more: '"author":"x"' }), 'INVALID_JSON', /author is repeated/],
  [
    'a member repeated in escapes',
    filing({ more: '"\\u0061uthor":"x"' }),
    'INVALID_JSON',
    /author is repeated/,
  ],
  [
    'a lone surrogate',
    filing({ member: 'author', value: '"Qi \\ud800 Baishi"' }),
    'VALIDATION_FAILED',
    /^author/,
  ],
  [
    'a number in place of a text',
    filing({ member: 'author', value: '1' }),
    'VALIDATION_FAILED',
    /^author must be a string$/,
  ],
  [
    'an array in place of a text',
    filing({ member: 'author', value: '["a"]' }),
    'VALIDATION_FAILED',
    /^author must be a string$/,
  ],
  ['null for what is required', filing({ member: 'author', value: 'null' }), 'VALIDATION_FAILED', /^author/],
  ['a member in other letters', filing({ more: '"Author":"x"' }), 'VALIDATION_FAILED', /^Author is not part/],
  [
    'a member that is not known',
    filing({ more: '"__proto__":{}' }),
    'VALIDATION_FAILED',
    /^__proto__ is not part/,
  ],
  ...notPrices.map(
    ([name, value, message]): Refused => [
      name,
      filing({ member: 'price', value }),
      'VALIDATION_FAILED',
      message,
    ],
  ),
];

for (const [way, send] of Object.entries(ways)) {
  for (const [name, body, reason, message] of refused) {
    test(`${name} is refused, and nothing is stored: ${way}`, async () => {
      const before = ledger.holdings();
      const answer = await send({ baseUrl, token, method: 'FilingService/CreateFiling', body });
      assert.equal(reasonOf(answer), reason, String(answer.error));
      assert.match(answer.error?.rawMessage ?? '', message);
      assert.deepEqual(ledger.holdings(), before);
    });
  }

  for (const price of ['9007199254740991', '"9007199254740991"', '1e3', '1000.0', '"1000"', '0']) {
    test(`the price ${price} is stored as it was sent: ${way}`, async () => {
      const body = filing({ member: 'price', value: price });
      const filed = await send({ baseUrl, token, method: 'FilingService/CreateFiling', body });
      assert.equal(filed.error, undefined);
      const asked = JSON.stringify({ filingNo: jsonOf(filed).filingNo });
      const read = await send({ baseUrl, token, method: 'FilingService/GetFiling', body: asked });
      // ProtoJSON writes int64 as a string, and leaves out what is 0.
      assert.equal(BigInt(jsonOf(read).filing.price ?? 0), BigInt(Number(JSON.parse(price))));
    });
  }

  test(`names are read through their escapes, and in both spellings: ${way}`, async () => {
    const escaped = filing({ member: 'author', value: '"x"' }).replace('author', '\\u0061uth\\u006Fr');
    const filed = await send({ baseUrl, token, method: 'FilingService/CreateFiling', body: escaped });
    const { filingNo } = jsonOf(filed);
    for (const name of ['filingNo', 'filing_no']) {
      const body = JSON.stringify({ [name]: filingNo });
      const read = await send({ baseUrl, token, method: 'FilingService/GetFiling', body });
      assert.equal(jsonOf(read).filing.author, 'x');
    }
    const both = JSON.stringify({ filingNo, filing_no: filingNo });
    const twice = await send({ baseUrl, token, method: 'FilingService/GetFiling', body: both });
    assert.equal(reasonOf(twice), 'VALIDATION_FAILED');
  });

  test(`null stands for what may be left out, and enums have their words alone: ${way}`, async () => {
    const list = (body: string) => send({ baseUrl, token, method: 'EscrowService/ListEscrows', body });
    assert.equal((await list('{"pageSize":null,"state":null}')).error, undefined);
    assert.equal((await list('{"state":"FROZEN","pageSize":5}')).error, undefined);
    for (const [body, message] of [
      ['{"state":"frozen"}', /^state must be UNPAID or FROZEN or /],
      ['{"state":true}', /^state must be UNPAID or FROZEN or /],
      ['{"state":[]}', /^state must be UNPAID or FROZEN or /],
      ['{"state":1.0000000000000000001}', /^state must be a whole number$/],
      ['{"pageSize":"0x10"}', /^pageSize must be a whole number/],
    ] as const) {
      const answer = await list(body);
      assert.equal(reasonOf(answer), 'VALIDATION_FAILED', body);
      assert.match(answer.error?.rawMessage ?? '', message);
    }
  });
}

const binaryWays: Record<string, RawSending> = {
  Connect: overConnect('application/proto'),
  gRPC: overGrpc('application/grpc+proto'),
  'gRPC-Web': overGrpcWeb('application/grpc-web+proto'),
};

for (const [way, send] of Object.entries(binaryWays)) {
  test(`a binary message with a byte that is not UTF-8 is refused: ${way}`, async () => {
    const { $typeName, ...fields } = { $typeName: CreateFilingRequestSchema.typeName, ...artwork };
    const message = { $typeName, ...fields, author: 'Qi ~ Baishi', price: 5n };
    const body = toBinary(CreateFilingRequestSchema, message as never);
    body[Buffer.from(body).indexOf('~')] = 0xff;
    const before = ledger.holdings();
    const answer = await send({ baseUrl, token, method: 'FilingService/CreateFiling', body });
    assert.equal(reasonOf(answer), 'VALIDATION_FAILED', String(answer.error));
    assert.match(answer.error?.rawMessage ?? '', /^The message cannot be decoded: .*UTF-8/);
    assert.deepEqual(ledger.holdings(), before);
  });
}

/** Asks with GET, with the query as it is written. */
async function get(query: string, method = 'FilingService/ListFilings', headers = bearer(token)) {
  return connectAnswer(await fetch(`${baseUrl}/artseal.v1.${method}?${query}`, { headers }));
}

const json = 'connect=v1&encoding=json';
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64url');

test('a read is answered to GET as it is to POST', async () => {
  const body = '{"pageSize":1}';
  const posted = await overConnect('application/json')({
    baseUrl,
    token,
    method: 'FilingService/ListFilings',
    body,
  });
  assert.equal(jsonOf(posted).filings.length, 1);
  // Tokens are sealed anew each time.
  const filingsOf = (answer: typeof posted) => jsonOf(answer).filings;
  for (const query of [
    `${json}&message=${encodeURIComponent(body)}`,
    `${json}&base64=1&message=${base64(body)}`,
    `message=${encodeURIComponent(body)}&encoding=json`,
  ]) {
    assert.deepEqual(filingsOf(await get(query)), filingsOf(posted));
  }
  assert.equal((await get('connect=v1&encoding=proto&base64=1&message=')).error, undefined);
});

test('GET needs the token in its header', async () => {
  assert.equal(
    reasonOf(await get(`${json}&message={}`, undefined, bearer(`${token}x`))),
    'AUTH_HEADER_INVALID',
  );
});

const queries: readonly (readonly [query: string, reason: string, message: RegExp])[] = [
  [`${json}&message=%7B%22pageToken%22:%22%FF%22%7D`, 'BAD_REQUEST_TARGET', /message must be UTF-8/],
  [
    `${json}&base64=1&message=${base64(Buffer.from('7b22706167655f746f6b656e223a22ff227d', 'hex'))}`,
    'INVALID_JSON',
    /UTF-8/,
  ],
  [`${json}&message=${encodeURIComponent('{"pageSize":1,"pageSize":2}')}`, 'INVALID_JSON', /repeated/],
  [`${json}&message=${encodeURIComponent('{"pageSize":"0x10"}')}`, 'VALIDATION_FAILED', /^pageSize/],
  [`${json}&message=${encodeURIComponent('{"PageSize":1}')}`, 'VALIDATION_FAILED', /^PageSize is not part/],
  [`${json}&message=`, 'INVALID_JSON', /ends too early/],
  [json, 'BAD_REQUEST_TARGET', /message is required/],
  [`${json}&message={}&message={}`, 'BAD_REQUEST_TARGET', /message is repeated/],
  [`${json}&message={}&pageSize=1`, 'BAD_REQUEST_TARGET', /pageSize; it takes connect/],
  [`${json}&&message={}`, 'BAD_REQUEST_TARGET', /has a parameter without a name; it takes connect/],
  ['', 'BAD_REQUEST_TARGET', /message is required/],
  [`${json}&%6dessage={}`, 'BAD_REQUEST_TARGET', /it takes connect/],
  [`${json}&message=%7`, 'BAD_REQUEST_TARGET', /message must be UTF-8/],
  [`${json}&base64=1&message=!`, 'BAD_REQUEST_TARGET', /base64/],
  [`${json}&base64=0&message={}`, 'BAD_REQUEST_TARGET', /base64 must be 1/],
  ['connect=v2&encoding=json&message={}', 'BAD_REQUEST_TARGET', /connect must be v1/],
  ['connect=v1&encoding=xml&message={}', 'UNSUPPORTED_MEDIA_TYPE', /encoding must be json or proto/],
  ['connect=v1&message={}', 'UNSUPPORTED_MEDIA_TYPE', /encoding must be json or proto/],
  [`${json}&compression=lz4&message={}`, 'UNSUPPORTED_MEDIA_TYPE', /gzip/],
  [`${json}&message=${'x'.repeat(4_096)}`, 'BAD_REQUEST_TARGET', /at most 4096 bytes.*POST/],
];

for (const [query, reason, message] of queries) {
  test(`GET is refused with ${reason}: ${query.slice(0, 80)}`, async () => {
    const answer = await get(query);
    assert.equal(reasonOf(answer), reason, String(answer.error));
    assert.match(answer.error?.rawMessage ?? '', message);
    assert.ok(answer.status < 500);
  });
}
