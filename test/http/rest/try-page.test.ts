import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { samples } from '../../../build/try-page/samples.ts';
import {
  hashOf,
  type Parts,
  readPasted,
  signatureOf,
  splitMessage,
} from '../../../build/try-page/signing.ts';

const vectors = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'testdata', 'signature.json'), 'utf8'),
);

for (const { name, method, target, body, timestamp, nonce, ...expected } of vectors) {
  test(`the page signs as documented: ${name}`, () => {
    const parts: Parts = [method, target, hashOf(body), timestamp, nonce];
    assert.equal(parts[2], expected.bodySha256);
    assert.equal(parts.join(''), expected.message);
    assert.equal(signatureOf(parts, expected.apiSecret), expected.signature);
    assert.deepEqual(splitMessage(expected.message, 1_795_000_000), parts);
    const message = `The API key is unknown or the signature does not match. The text to sign was: ${expected.message}`;
    for (const pasted of [expected.message, ` ${message}\n`, JSON.stringify({ code: 'X', message }, null, 2)])
      assert.equal(readPasted(pasted), expected.message);
  });
}

test('a text that is no message is not split, and any paste can be read', () => {
  const [{ message }] = vectors;
  for (const text of ['', 'POST', message.slice(4), `${message}\n`, message.replace('1795', ' 1795')])
    assert.equal(splitMessage(text, 1_795_000_000), undefined, text);
  for (const text of ['', 'null', '{}', '7', '"a"', '{"message":null}', '{"message":'])
    assert.equal(typeof readPasted(text), 'string');
});

test('nothing that a user enters ends its quotes in the code of a call', () => {
  const body = `'; touch broken; '"\\\n\u2028$(id)\`id\``;
  const call = {
    base: 'http://127.0.0.1:1',
    method: 'POST',
    target: `/a'b$(id)`,
    body,
    headers: { 'X-A': `'"$(id)` },
  };
  const quoted = `'${body.replaceAll("'", `'\\''`)}'`;
  const [curl = '', openssl = '', ...literals] = Object.values(samples).map((write) => write(call, {}));
  for (const code of [curl, openssl]) {
    assert.ok(code.includes(quoted));
    assert.ok(code.includes(`/a'\\''b$(id)'`));
    assert.ok(code.includes(`'X-A: '\\''"$(id)'`));
  }
  assert.equal(literals.length, 2);
  for (const code of literals) {
    assert.ok(code.includes(JSON.stringify(body)));
    assert.ok(code.includes(JSON.stringify(call.target)));
  }
});
