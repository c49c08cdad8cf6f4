import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CreateFilingRequest, FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import type { ServiceDependencies } from '../../../src/api/services/dependencies.ts';
import { createFilingService } from '../../../src/api/services/filing-service.ts';
import { fileArtwork, jsonWith } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { apiError, assertRejected } from '../../support/rejected.ts';
import { requestReader } from '../../support/request-reader.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';

const read = requestReader(FilingService, createFilingService({} as ServiceDependencies));
const readFiling = (body: string) => read('POST', '/api/v1/filing', body) as CreateFilingRequest;

function assertInvalid(body: string, ...messages: RegExp[]): void {
  for (const message of messages)
    assert.throws(() => readFiling(body), apiError('VALIDATION_FAILED', message));
}

const textFields = { author: 200, era: 200, size: 200, material: 200, condition: 2_000 } as const;

for (const [field, max] of Object.entries(textFields)) {
  const bounds = new RegExp(`^${field} (is required: |must have )1 to ${max} characters$`);
  const isText = new RegExp(`^${field} must be a string$`);
  const wrong: readonly (readonly [what: string, json: string | undefined, message: RegExp])[] = [
    ['missing', undefined, bounds],
    ['empty', '""', bounds],
    ['one character too long', `"${'a'.repeat(max + 1)}"`, bounds],
    ['null', 'null', isText],
    ['a number', '1947', isText],
    ['true', 'true', isText],
    ['an array', '["a"]', isText],
    ['an object', '{"a":"b"}', isText],
    ['white space alone', '" \\u00a0\\u3000"', new RegExp(`^${field} .*white space`)],
    ['with an escaped line feed', '"a\\nb"', new RegExp(`^${field} .*control characters`)],
    ['with a lone high surrogate', '"a\\ud83d"', new RegExp(`^${field} .*lone surrogate`)],
  ];
  for (const [what, json, message] of wrong) {
    test(`${field} ${what} is rejected`, () => {
      const body =
        json === undefined
          ? JSON.stringify({ ...artwork, [field]: undefined })
          : jsonWith(artwork, field, json);
      assertInvalid(body, message);
    });
  }

  test(`${field} of 1 and of ${max} code points is accepted`, () => {
    for (const text of ['x', '石'.repeat(max), '🖌'.repeat(max)]) {
      const message = readFiling(JSON.stringify({ ...artwork, [field]: text }));
      assert.equal(message[field as keyof typeof textFields], text);
    }
  });
}

const prices: readonly (readonly [json: string, price: number])[] = [
  ['0', 0],
  ['-0', 0],
  ['0.0', 0],
  ['0e99999', 0],
  ['1', 1],
  ['1e3', 1_000],
  ['1E+3', 1_000],
  ['1000.0', 1_000],
  ['1.5e1', 15],
  ['1200e-2', 12],
  ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ['9007199254740991.000', Number.MAX_SAFE_INTEGER],
  ['9.007199254740991e15', Number.MAX_SAFE_INTEGER],
  ['90071992547409910e-1', Number.MAX_SAFE_INTEGER],
];

for (const [json, price] of prices) {
  test(`the price ${json} is the integer ${price}`, () => {
    assert.equal(readFiling(jsonWith(artwork, 'price', json)).price, BigInt(price));
  });
}

const notPrices: readonly (readonly [json: string, message: RegExp])[] = [
  ['1.5', /^price must be a whole number of minor units \(fen, cents\)$/],
  ['1e-1', /^price must be a whole number of minor units \(fen, cents\)$/],
  ['9007199254740990.5', /^price must be a whole number of minor units \(fen, cents\)$/],
  ['0.0000000000000000000000000000001', /^price must be a whole number of minor units \(fen, cents\)$/],
  ['1e-999999999', /^price must be a whole number of minor units \(fen, cents\)$/],
  ['"1"', /^price must be a whole number of minor units \(fen, cents\), written as a JSON number$/],
  ['null', /^price must be a whole number of minor units \(fen, cents\), written as a JSON number$/],
  ['true', /^price must be a whole number of minor units \(fen, cents\), written as a JSON number$/],
  ['[1]', /^price must be a whole number of minor units \(fen, cents\), written as a JSON number$/],
  ['{}', /^price must be a whole number of minor units \(fen, cents\), written as a JSON number$/],
  ['-1', /^price must be a whole number of minor units \(fen, cents\) from 0 to/],
  ['9007199254740992', /^price must be a whole number of minor units .*9007199254740991/],
  ['9007199254740993', /^price must be a whole number of minor units .*9007199254740991/],
  ['1e999999999999', /^price must be a whole number of minor units .*9007199254740991/],
  ['9'.repeat(10_000), /^price must be a whole number of minor units .*9007199254740991/],
];

for (const [json, message] of notPrices) {
  test(`the price ${json.slice(0, 40)} is rejected`, () => {
    assertInvalid(jsonWith(artwork, 'price', json), message);
  });
}

test('a missing price is rejected with its bounds', () => {
  assertInvalid(
    JSON.stringify({ ...artwork, price: undefined }),
    /^price is required: a whole number of minor units \(fen, cents\) from 0 to 9007199254740991$/,
  );
});

test('one message names all invalid fields, each once', () => {
  const sent = { author: '', era: 7, size: 'a'.repeat(201), material: ' ', price: -1, colour: 'red' };
  assertInvalid(
    JSON.stringify(sent),
    ...['author', 'era', 'size', 'material', 'condition', 'price', 'colour'].map(
      (field) => new RegExp(`(^|; )${field} `),
    ),
    /^(?:[^;]+; ){6}[^;]+$/,
  );
});

test('the name of an unknown member is shown short and without control characters', () => {
  const body = `{"${'n'.repeat(5_000)}":1,"a\\u001b[31m\\n":1,${JSON.stringify(artwork).slice(1)}`;
  assertInvalid(body, /^n{64}… is not part/, /^\P{Cc}{1,299}$/u);
});

test('an invalid filing over REST gets 400, stores nothing and uses no number', async () => {
  const service = await startService(fileScope);
  const ledger = openLedger(fileScope, service);
  const platform = await service.platform();
  const before = ledger.holdings();
  for (const [field, json, message] of [
    ['author', '""', /^author /],
    ['price', '1.5', /^price /],
    ['colour', '"red"', /^colour is not part/],
  ] as const) {
    const answer = await fileArtwork(service, platform, { body: jsonWith(artwork, field, json) });
    assertRejected(answer, 400, 'VALIDATION_FAILED', message);
  }
  assert.deepEqual(ledger.holdings(), before);
  assert.match((await fileArtwork(service, platform)).json.filingNo, /-000001$/);
});
