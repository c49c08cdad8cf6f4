import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkText } from '../../src/domain/text.ts';

const bounds = { min: 1, max: 5 };

const accepted: readonly (readonly [what: string, text: string])[] = [
  ['one character', 'a'],
  ['as many ASCII characters as allowed', 'abcde'],
  ['as many Han characters as allowed', '齐白石近现'],
  ['as many astral characters as allowed, of two UTF-16 units each', '🖌'.repeat(5)],
  ['one astral character', '𠮷'],
  ['spaces around a visible character', ' a '],
  ['a combining mark by itself', '\u0301'],
  ['a zero-width joiner within an emoji', '👩\u200d🎨'],
  ['a line separator beside a visible character', 'a\u2028b'],
  ['a noncharacter beside a visible one', 'a\uffff'],
  ['a private-use character', '\ue000'],
  ['a zero-width non-joiner, which Persian needs', 'می\u200cخو'],
];

for (const [what, text] of accepted) {
  test(`a text is accepted: ${what}`, () => assert.deepEqual(checkText('era', text, bounds), []));
}

const refused: readonly (readonly [what: string, text: string, rule: RegExp])[] = [
  ['nothing', '', /is required: 1 to 5 characters/],
  ['one ASCII character too many', 'abcdef', /must have 1 to 5 characters/],
  ['one astral character too many', '🖌'.repeat(6), /must have 1 to 5 characters/],
  ['one character too many, the last astral', 'abcde🖌', /must have 1 to 5 characters/],
  ['far too many characters', 'x'.repeat(100_000), /must have 1 to 5 characters/],
  ['a lone high surrogate', 'a\ud83d', /lone surrogate/],
  ['a lone low surrogate', '\udd8c', /lone surrogate/],
  ['surrogates in the wrong order', '\udd8c\ud83d', /lone surrogate/],
  ['a high surrogate before another character', '\ud83da', /lone surrogate/],
  ['a space alone', ' ', /white space/],
  ['no-break spaces alone', '\u00a0\u202f', /white space/],
  ['ideographic spaces alone', '\u3000\u3000', /white space/],
  ['line and paragraph separators alone', '\u2028\u2029', /white space/],
];

for (const [what, text, rule] of refused) {
  test(`a text is rejected with its field and rule: ${what}`, () => {
    const [violation, ...more] = checkText('era', text, bounds);
    assert.equal(violation?.field, 'era');
    assert.match(violation.rule, rule);
    assert.deepEqual(more, []);
  });
}

test('every control character is rejected, at any position', () => {
  const controls = [...Array(0x20).keys(), ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index)];
  for (const code of controls) {
    const control = String.fromCharCode(code);
    for (const text of [`${control}a`, `a${control}`, control]) {
      const rules = checkText('era', text, bounds).map(({ rule }) => rule);
      assert.deepEqual(rules, ['must have no control characters'], `U+${code.toString(16)}`);
    }
  }
});

test('every deceptive character is rejected by its code and name, at any position', () => {
  for (const [character, named] of [
    ['\u202a', 'U+202A LEFT-TO-RIGHT EMBEDDING'],
    ['\u202b', 'U+202B RIGHT-TO-LEFT EMBEDDING'],
    ['\u202c', 'U+202C POP DIRECTIONAL FORMATTING'],
    ['\u202d', 'U+202D LEFT-TO-RIGHT OVERRIDE'],
    ['\u202e', 'U+202E RIGHT-TO-LEFT OVERRIDE'],
    ['\u2066', 'U+2066 LEFT-TO-RIGHT ISOLATE'],
    ['\u2067', 'U+2067 RIGHT-TO-LEFT ISOLATE'],
    ['\u2068', 'U+2068 FIRST STRONG ISOLATE'],
    ['\u2069', 'U+2069 POP DIRECTIONAL ISOLATE'],
    ['\u200b', 'U+200B ZERO WIDTH SPACE'],
    ['\u2060', 'U+2060 WORD JOINER'],
    ['\ufeff', 'U+FEFF ZERO WIDTH NO-BREAK SPACE'],
  ] as const)
    for (const text of [`${character}ab`, `a${character}b`, `ab${character}`, character])
      assert.deepEqual(checkText('era', text, bounds), [{ field: 'era', rule: `must not have ${named}` }]);
});
