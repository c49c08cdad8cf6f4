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

/** test/domain/filing.test.ts and text.test.ts have the rules of texts. */
for (const [field, max] of Object.entries({
  author: 200,
  era: 200,
  size: 200,
  material: 200,
  condition: 2_000,
})) {
  test(`${field} is a text that is required, and no other JSON`, () => {
    const bounds = new RegExp(`^${field} (is required: |must have )1 to ${max} characters$`);
    assertInvalid(JSON.stringify({ ...artwork, [field]: undefined }), bounds);
    assertInvalid(jsonWith(artwork, field, `"${'a'.repeat(max + 1)}"`), bounds);
    for (const json of ['null', '1947', 'true', '["a"]', '{"a":"b"}'])
      assertInvalid(jsonWith(artwork, field, json), new RegExp(`^${field} must be a string$`));
  });
}

for (const [price, ...numerals] of [
  [0, '0', '-0', '0.0', '0e99999'],
  [1_000, '1000', '1e3', '1E+3', '1000.0'],
  [12, '1.2e1', '1200e-2'],
  [
    Number.MAX_SAFE_INTEGER,
    '9007199254740991',
    '9007199254740991.000',
    '9.007199254740991e15',
    '90071992547409910e-1',
  ],
] as const) {
  test(`the price ${price} is read in any notation`, () => {
    for (const json of numerals)
      assert.equal(readFiling(jsonWith(artwork, 'price', json)).price, BigInt(price), json);
  });
}

const whole = 'price must be a whole number of minor units \\(fen, cents\\)';
for (const [rule, ...values] of [
  [`^${whole}$`, '1.5', '1e-1', '9007199254740990.5', '0.0000000000000000000000000000001', '1e-999999999'],
  [`^${whole}, written as a JSON number$`, '"1"', 'null', 'true', '[1]', '{}'],
  [`^${whole} from 0 to`, '-1'],
  [
    `^${whole} .*9007199254740991`,
    '9007199254740992',
    '9007199254740993',
    '1e999999999999',
    '9'.repeat(10_000),
  ],
] as const) {
  test(`another price is rejected: ${rule}`, () => {
    for (const json of values) assertInvalid(jsonWith(artwork, 'price', json), new RegExp(rule));
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
