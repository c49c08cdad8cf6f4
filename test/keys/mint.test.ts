import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { mintKey, mintToken, tokenHash } from '../../src/keys/mint.ts';

for (const [environment, word] of [
  ['sandbox', 'sandbox'],
  ['production', 'live'],
] as const) {
  test(`credentials of ${environment} have the word ${word}`, () => {
    const { keyId, apiKey, apiSecret } = mintKey(environment);
    assert.match(keyId, /^key_[0-9a-f]{16}$/);
    assert.match(apiKey, new RegExp(`^ak_${word}_[0-9a-f]{32}$`));
    assert.match(apiSecret, new RegExp(`^sk_${word}_[0-9a-f]{64}$`));
    const { tokenId, token } = mintToken(environment);
    assert.match(tokenId, /^tok_[0-9a-f]{16}$/);
    assert.match(token, new RegExp(`^it_${word}_[0-9a-f]{64}$`));
  });
}

test('the random parts of credentials differ', () => {
  const keys = Array.from({ length: 500 }, () => mintKey('sandbox'));
  const tokens = Array.from({ length: 500 }, () => mintToken('sandbox'));
  const random = [...keys, ...tokens]
    .flatMap((minted) => Object.values(minted))
    .map((text) => text.split('_').at(-1));
  assert.equal(new Set(random).size, random.length);
});

test('the handles, which logs and lists show, are not part of the credentials', () => {
  const { keyId, apiKey, apiSecret } = mintKey('sandbox');
  const { tokenId, token } = mintToken('sandbox');
  for (const credential of [apiKey, apiSecret]) assert.ok(!credential.includes(keyId.slice(4)));
  assert.ok(!token.includes(tokenId.slice(4)));
});

test('a token is stored by its SHA-256', () => {
  const expected = createHash('sha256').update('it_sandbox_1').digest();
  assert.deepEqual(Buffer.from(tokenHash('it_sandbox_1')), expected);
});
