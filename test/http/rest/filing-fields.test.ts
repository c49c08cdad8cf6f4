import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reason } from '../../../src/domain/reason.ts';
import { fileArtwork, jsonWith } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const platform = await service.platform();

/** Files a body that must be refused; asserts that nothing is stored and that no number is used. */
async function assertNotFiled(body: string, code: Reason, ...message: RegExp[]): Promise<void> {
  const before = ledger.holdings();
  assertRefused(await fileArtwork(service, platform, { body }), 400, code, ...message);
  assert.deepEqual(ledger.holdings(), before);
}

/** A filing as the store has it. */
const stored = ({ json: { filingNo } }: RestAnswer) =>
  service.execute({ kind: 'GetFiling', filingNo, owner: undefined });

const textFields = { author: 200, era: 200, size: 200, material: 200, condition: 2_000 } as const;

for (const [field, max] of Object.entries(textFields)) {
  const bounds = new RegExp(`^${field} (is required: |must have )1 to ${max} characters$`);
  const isText = new RegExp(`^${field} must be a string$`);
  const wrong: readonly (readonly [what: string, json: string | undefined, message: RegExp])[] = [
    ['missing', undefined, bounds],
    ['empty', '""', bounds],
    ['one character too long', `"${'a'.repeat(max + 1)}"`, bounds],
    ['one astral character too long', `"${'🖌'.repeat(max + 1)}"`, bounds],
    ['null', 'null', isText],
    ['a number', '1947', isText],
    ['true', 'true', isText],
    ['an array', '["a"]', isText],
    ['an object', '{"a":"b"}', isText],
    ['white space alone', '" \\u00a0\\u3000"', new RegExp(`^${field} .*white space`)],
    ['with an escaped line feed', '"a\\nb"', new RegExp(`^${field} .*control characters`)],
    ['with an escaped NUL', '"a\\u0000"', new RegExp(`^${field} .*control characters`)],
    ['with a C1 control character', '"a\u0085"', new RegExp(`^${field} .*control characters`)],
    ['turned around', '"a\\u202eb"', new RegExp(`^${field} must not have U\\+202E RIGHT-TO-LEFT OVERRIDE$`)],
    [
      'with a zero width space',
      '"a\u200bb"',
      new RegExp(`^${field} must not have U\\+200B ZERO WIDTH SPACE$`),
    ],
    ['with a lone high surrogate', '"a\\ud83d"', new RegExp(`^${field} .*lone surrogate`)],
    ['with a lone low surrogate', '"\\udd8ca"', new RegExp(`^${field} .*lone surrogate`)],
  ];
  for (const [what, json, message] of wrong) {
    test(`${field} ${what} is refused and files nothing`, async () => {
      const body =
        json === undefined
          ? JSON.stringify({ ...artwork, [field]: undefined })
          : jsonWith(artwork, field, json);
      await assertNotFiled(body, 'VALIDATION_FAILED', message);
    });
  }

  test(`${field} of 1 and of ${max} code points is filed`, async () => {
    for (const text of ['x', '石'.repeat(max), '🖌'.repeat(max)]) {
      const answer = await fileArtwork(service, platform, {
        body: JSON.stringify({ ...artwork, [field]: text }),
      });
      assert.equal(answer.status, 200, answer.text);
      const filing = await stored(answer);
      assert.equal(filing?.[field as keyof typeof textFields], text);
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
  test(`the price ${json} is the integer ${price}`, async () => {
    const answer = await fileArtwork(service, platform, { body: jsonWith(artwork, 'price', json) });
    assert.equal(answer.status, 200, answer.text);
    const filing = await stored(answer);
    assert.equal(filing?.price, BigInt(price));
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
  ['-1e0', /^price must be a whole number of minor units/],
  ['9007199254740992', /^price must be a whole number of minor units .*9007199254740991/],
  ['9007199254740993', /^price must be a whole number of minor units .*9007199254740991/],
  ['-9007199254740993', /^price must be a whole number of minor units/],
  ['18446744073709551617', /^price must be a whole number of minor units .*9007199254740991/],
  ['1e400', /^price must be a whole number of minor units .*9007199254740991/],
  ['1e999999999999', /^price must be a whole number of minor units .*9007199254740991/],
  ['9'.repeat(10_000), /^price must be a whole number of minor units .*9007199254740991/],
];

for (const [json, message] of notPrices) {
  test(`the price ${json.slice(0, 40)} is refused and files nothing`, async () => {
    await assertNotFiled(jsonWith(artwork, 'price', json), 'VALIDATION_FAILED', message);
  });
}

test('a price that is missing is refused with its bounds', async () => {
  const body = JSON.stringify({ ...artwork, price: undefined });
  await assertNotFiled(
    body,
    'VALIDATION_FAILED',
    /^price is required: a whole number of minor units \(fen, cents\) from 0 to 9007199254740991$/,
  );
});

test('a price below its bound is refused with that bound', async () => {
  await assertNotFiled(
    jsonWith(artwork, 'price', '-1'),
    'VALIDATION_FAILED',
    /^price .* from 0 to 9007199254740991/,
  );
});

test('one message names all fields that fail, each once', async () => {
  const sent = { author: '', era: 7, size: 'a'.repeat(201), material: ' ', price: -1, colour: 'red' };
  await assertNotFiled(
    JSON.stringify(sent),
    'VALIDATION_FAILED',
    ...['author', 'era', 'size', 'material', 'condition', 'price', 'colour'].map(
      (field) => new RegExp(`(^|; )${field} `),
    ),
    /^(?:[^;]+; ){6}[^;]+$/,
  );
});

for (const member of [
  'Author',
  'prize',
  'filing_no',
  'filingNo',
  '',
  ' author',
  '__proto__',
  'constructor',
  'toString',
]) {
  test(`the unknown member ${JSON.stringify(member)} is refused by name, and files nothing`, async () => {
    const body = `{${JSON.stringify(member)}:"x",${JSON.stringify(artwork).slice(1)}`;
    await assertNotFiled(body, 'VALIDATION_FAILED', new RegExp(`^${member} is not part of this request$`));
  });
}

test('the name of an unknown member is shown short and without control characters', async () => {
  const body = `{"${'n'.repeat(5_000)}":1,"a\\u001b[31m\\n":1,${JSON.stringify(artwork).slice(1)}`;
  const answer = await fileArtwork(service, platform, { body });
  assertRefused(answer, 400, 'VALIDATION_FAILED', /^n{64}… is not part/);
  assert.ok(answer.json.message.length < 300);
  assert.doesNotMatch(answer.json.message, /\p{Cc}/u);
});

for (const query of ['?a=1', '?author=x', '?', '?price']) {
  test(`the query ${query} of a filing is ${query === '?' ? 'nothing' : 'refused by name'}`, async () => {
    const before = ledger.holdings().filings;
    const answer = await fileArtwork(service, platform, { target: `/api/v1/filing${query}` });
    if (query === '?') {
      assert.equal(answer.status, 200, answer.text);
      return;
    }
    assertRefused(answer, 400, 'VALIDATION_FAILED', new RegExp(`${/\w+/.exec(query)?.[0]} is not part`));
    assert.equal(ledger.holdings().filings, before);
  });
}

test('after all these refusals the numbers are consecutive', async () => {
  const { filings } = ledger.holdings();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  assert.equal(Number(filingNo.slice(-6)), filings + 1);
});
