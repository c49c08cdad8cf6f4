import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readIdempotencyKey } from '../../src/api/admission.ts';
import { apiError } from '../support/rejected.ts';

for (const [what, sent] of [
  ['empty', ['']],
  ['quotes alone', ['""']],
  ['256 characters', ['k'.repeat(256)]],
  ['with a space', ['a b']],
  ['not ASCII', ['é']],
  ['sent twice', ['a', 'b']],
  ['sent twice with the same value', ['a', 'a']],
] as const) {
  test(`an Idempotency-Key is invalid: ${what}`, () => {
    assert.throws(() => readIdempotencyKey(sent), apiError('IDEMPOTENCY_KEY_INVALID', /1 to 255/));
  });
}

test('an Idempotency-Key has 1 to 255 visible ASCII characters, without one pair of quotes', () => {
  assert.equal(readIdempotencyKey([]), undefined);
  for (const key of ['k', 'k'.repeat(255), '!"~', '""k""'.slice(1, -1)])
    for (const sent of [key, `"${key}"`])
      assert.equal(readIdempotencyKey([sent]), sent === key ? key.replace(/^"(.*)"$/, '$1') : key);
});
