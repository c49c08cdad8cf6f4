import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../src/domain/reason.ts';
import {
  JsonNumber,
  type JsonValue,
  jsonDepthMax,
  parseJsonObject,
  shownName,
} from '../../src/lib/strict-json.ts';
import { createRandom } from '../support/random.ts';
import { apiError } from '../support/rejected.ts';

const parse = (text: string) => parseJsonObject(Buffer.from(text));

/** The value that JSON.parse would return. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return Number(value.text);
  if (value instanceof Map)
    return Object.fromEntries(Array.from(value, ([name, member]) => [name, plain(member)]));
  if (Array.isArray(value)) return value.map(plain);
  return value;
}

test('numbers keep their digits', () => {
  for (const written of [
    '0',
    '-0',
    '9007199254740993',
    '1e400',
    '1.10',
    '1E+2',
    '-0.0e-0',
    '1'.repeat(5_000),
  ]) {
    const value = parse(`{"n":${written}}`).get('n');
    assert.ok(value instanceof JsonNumber);
    assert.equal(value.text, written);
  }
});

test('members keep their order, and __proto__ is a member like any other', () => {
  const object = parse('{"b":1,"a":2,"__proto__":3,"1":4}');
  assert.deepEqual([...object.keys()], ['b', 'a', '__proto__', '1']);
});

test('values of every kind, and strings and names with all their escapes, are read as by JSON.parse', () => {
  const names = [
    '\n',
    'a\n',
    '"',
    '\\',
    '\\n',
    '/',
    '\b\f\r\t',
    '\u0000',
    '齐\u2028',
    '🖌',
    '\ud800',
    '\udd8c\ud83d',
  ];
  const escapedThrough = (name: string) => `"${Array.from(name.split(''), escaped).join('')}"`;
  const escapes = '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\ud83d\\udd8c\\uD800"';
  for (const text of [
    ' {"a" : "x", "b":[1,-2.5e+3,[],{}], "c":{"d":null,"e":true,"f":false}, "":"" } ',
    `{"s":${escapes},${escapes}:1}`,
    ...[JSON.stringify, escapedThrough].map(
      (write) => `{${names.map((name) => `${write(name)}:"齐"`).join()}}`,
    ),
  ])
    assert.ok(assertAgrees(text.toWellFormed(), text));
});

test('a repeated member is rejected, also if it is escaped otherwise', () => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"b":2,"a":3}',
    '{"a":1,"\\u0061":1}',
    '{"x":{"a":1,"a":2}}',
    '{"x":[{"a":1,"a":2}]}',
  ]) {
    assert.throws(() => parse(text), apiError('INVALID_JSON', /member a is repeated/));
  }
  assert.throws(() => parse('{"":1,"":2}'), apiError('INVALID_JSON', /repeated/));
  assert.throws(() => parse('{"__proto__":1,"__proto__":2}'), apiError('INVALID_JSON', /repeated/));
});

test('the same name in different objects is allowed', () => {
  assert.equal(parse('{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}').size, 2);
});

const body = '{"author":"Qi","era":"1946","price":7}';

const notOneObject: readonly (readonly [what: string, text: string | Uint8Array])[] = [
  ['nothing', ''],
  ['white space', ' \n'],
  ['an array', '[]'],
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
  ['a leading zero', body.replace('7', '07')],
  ['a plus sign', body.replace('7', '+1')],
  ['a hexadecimal number', body.replace('7', '0x10')],
  ['a number without its fraction', body.replace('7', '1.')],
  ['a number without its exponent', body.replace('7', '1e')],
  ['an unescaped line feed in a string', body.replace('Qi', 'Q\ni')],
  ['an unknown escape', body.replace('Qi', 'Q\\x69')],
  ['a broken escape', body.replace('Qi', '\\u12G4')],
  ['a no-break space between members', body.replace(',', ',\u00a0')],
  ['UTF-16', Buffer.from(body, 'utf16le')],
  ['form data', 'author=x&era=y'],
];

for (const [what, text] of notOneObject) {
  test(`a text is not one JSON object: ${what}`, () => {
    assert.throws(() => parseJsonObject(Buffer.from(text as string)), apiError('INVALID_JSON', /body/));
  });
}

test('nesting deeper than the bound is rejected', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
  assert.equal(parse(nested(jsonDepthMax)).size, 1);
  const tooDeep = apiError('INVALID_JSON', new RegExp(`deeper than ${jsonDepthMax} levels`));
  assert.throws(() => parse(nested(jsonDepthMax + 1)), tooDeep);
  for (const deep of [`{"a":${'['.repeat(60_000)}`, '{"a":'.repeat(10_000)])
    assert.throws(() => parse(deep), tooDeep);
});

test('the message has the position of the fault', () => {
  assert.throws(() => parse('{"a":1,}'), apiError('INVALID_JSON', /position 7/));
  assert.throws(() => parse('{"a":1'), apiError('INVALID_JSON', /ends too early/));
});

test('a message shows the name of a member short, well-formed and without control characters', () => {
  assert.equal(shownName('price'), 'price');
  assert.equal(shownName('n'.repeat(65)), `${'n'.repeat(64)}…`);
  assert.equal(shownName('a\n\u001b[0m\u202eb'), 'a\ufffd\ufffd[0m\ufffdb');
  assert.ok(shownName('\ud800').isWellFormed());
  assert.ok(shownName(`${'x'.repeat(63)}🖌🖌`).isWellFormed());
});

test('bytes that are not UTF-8 and a byte order mark are rejected', () => {
  for (const bytes of [
    [0x7b, 0xff, 0x7d],
    [0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d],
    [0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d],
    [0x7b, 0x22, 0xf4, 0x90, 0x80, 0x80, 0x22, 0x3a, 0x31, 0x7d],
    [0x7b, 0x22, 0xe9, 0xbd, 0x22, 0x3a, 0x31, 0x7d],
  ]) {
    assert.throws(() => parseJsonObject(Uint8Array.from(bytes)), apiError('INVALID_JSON', /UTF-8/));
  }
  assert.throws(() => parse('\ufeff{}'), apiError('INVALID_JSON', /: it begins with a byte order mark\.$/));
});

test('a body of the largest size is parsed or rejected, whatever its structure', () => {
  const floods = [
    `{"a":"${'\\u0041'.repeat(10_900)}`,
    `{"a":"${'x'.repeat(65_000)}`,
    `{"a":${'1'.repeat(65_000)}`,
  ];
  for (const flood of floods) assert.throws(() => parse(flood), apiError('INVALID_JSON'));
  const members = Array.from({ length: 6_000 }, (_, index) => `"m${index}":1`);
  assert.equal(parse(`{${members.join(',')}}`).size, 6_000);
  assert.equal((parse(`{"a":[${'1,'.repeat(30_000)}1]}`).get('a') as JsonValue[]).length, 30_001);
});

/** JSON of every kind, which a test damages. */
const sample =
  '{"v": {"a":[1,-0,2.5e+3,{}],"b\u2028":"齐/\\u0041\\n🖌","c":[true,false,null],"":" é\u007f"},\n"x" :\t12345678901234567890}';

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const escapedName = /"(?:[^"\\]|\\.)*\\.(?:[^"\\]|\\.)*"[ \t\n\r]*:/s;

/** The object that JSON.parse returns; undefined if the text is not one JSON object. */
function reference(text: string): object | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Asserts that both parsers agree. Returns whether both parsed an object. */
function assertAgrees(text: string, context: string): boolean {
  const expected = reference(text);
  let actual: unknown;
  try {
    actual = plain(parse(text));
  } catch (error) {
    assert.ok(error instanceof ApiError && error.reason === 'INVALID_JSON', `${context}: ${error}`);
    // JSON.parse keeps the last of repeated members and nests without bound.
    if (/repeated|nests deeper/.test(error.message)) return false;
    assert.equal(expected, undefined, `${context}: refused (${error.message}), but JSON.parse reads it`);
    return false;
  }
  assert.deepEqual(actual, expected, context);
  return true;
}

test('damaged JSON is rejected if JSON.parse rejects it', () => {
  const random = createRandom();
  const pieces = [
    ...'{}[]",:\\/-+.eE0 1\t\n\u00a0\u2028x\'',
    'null',
    'true',
    '\\u',
    '""',
    '🖌',
    '\u0001',
    ',}',
    '{"v":',
  ];
  let agreed = 0;
  for (let count = 0; count < 3_000; count += 1) {
    let text = sample;
    for (let damage = random.below(3); damage >= 0; damage -= 1) {
      const at = random.below(text.length + 1);
      const replaced = random.pick([0, 0, 1, 1, 2, text.length]);
      text = text.slice(0, at) + random.pick(['', random.pick(pieces)]) + text.slice(at + replaced);
    }
    text = text.toWellFormed();
    if (escapedName.test(text)) continue;
    if (assertAgrees(text, `seed ${random.seed}, text ${count}: ${JSON.stringify(text)}`)) agreed += 1;
  }
  assert.ok(agreed > 75, `only ${agreed} of the damaged texts were still JSON`);
});
