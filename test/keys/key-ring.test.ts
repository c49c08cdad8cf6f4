import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';

const secret = 'sk_sandbox_4f1d2c3b4a5968776655443322110 0ffeeddccbbaa9 é🖌';
const masterKey = (name: string) => ({ name, key: randomBytes(32) });
const opened = (key: { export(): unknown }) => String(key.export());
const hex = (digit: string) => digit.repeat(64);

test('a secret opens to what was sealed; seals hide it, and differ each time', () => {
  const ring = createKeyRing([masterKey('main')]);
  const [one, other] = [ring.seal(secret, 'key_1'), ring.seal(secret, 'key_1')];
  for (const sealed of [one, other]) {
    assert.equal(opened(ring.open(sealed, 'key_1')), secret);
    assert.ok(!Buffer.from(sealed).includes(secret.slice(0, 8)));
  }
  assert.notDeepEqual(one, other);
});

test('a seal opens only unchanged, for its key id and with the bytes of its master key', () => {
  const ring = createKeyRing([masterKey('main')]);
  const sealed = ring.seal(secret, 'key_1');
  for (let at = 0; at < sealed.length; at += 1) {
    const altered = Uint8Array.from(sealed);
    altered[at] = (altered[at] ?? 0) ^ 1;
    assert.throws(() => ring.open(altered, 'key_1'), Error, `byte ${at}`);
    assert.throws(() => ring.open(sealed.subarray(0, at), 'key_1'), Error, `${at} bytes`);
  }
  assert.throws(() => ring.open(Buffer.concat([sealed, Buffer.of(0)]), 'key_1'));
  for (const keyId of ['key_2', 'key_', 'key_11', '']) assert.throws(() => ring.open(sealed, keyId));
  assert.throws(() => createKeyRing([masterKey('main')]).open(sealed, 'key_1'));
});

test('a seal under a master key that the ring does not hold names that key, and no bytes', () => {
  const sealed = createKeyRing([masterKey('retired')]).seal(secret, 'key_1');
  const ring = createKeyRing([masterKey('main')]);
  assert.throws(() => ring.open(sealed, 'key_1'), /key_1.*'retired'.*not in the ring/);
});

test('after a rotation the new master key seals, and the old one still opens what it sealed', () => {
  const [old, young] = [masterKey('y2026'), masterKey('y2027')];
  const before = createKeyRing([old]).seal(secret, 'key_1');
  const ring = createKeyRing([young, old]);
  assert.equal(opened(ring.open(before, 'key_1')), secret);
  const after = ring.seal(secret, 'key_1');
  assert.equal(opened(createKeyRing([young]).open(after, 'key_1')), secret);
  assert.throws(() => createKeyRing([old]).open(after, 'key_1'), /'y2027'/);
});

test('a ring needs a key', () => {
  assert.throws(() => createKeyRing([]), RangeError);
});

const forms: readonly (readonly [what: string, text: string, names: readonly string[]])[] = [
  ['one key without a name', hex('a'), ['main']],
  ['one key with a name', `y2026:${hex('a')}`, ['y2026']],
  ['a key a line', `b:${hex('b')}\na:${hex('a')}\n`, ['b', 'a']],
  ['lines that end in CR LF', `b:${hex('b')}\r\na:${hex('a')}\r\n`, ['b', 'a']],
  ['commas between', `b:${hex('b')},a:${hex('a')}`, ['b', 'a']],
  ['white space around', `  b:${hex('b')} , a:${hex('a')}  `, ['b', 'a']],
  ['empty lines and comments', `# the keys\n\nb:${hex('b')} # sealing\n#a\n`, ['b']],
  ['a comment with a comma', `# made in 2026, kept in the vault\nb:${hex('b')}\n`, ['b']],
];

for (const [what, text, names] of forms) {
  test(`master keys are read: ${what}`, () => {
    const keys = parseMasterKeys(text);
    assert.deepEqual(
      keys.map(({ name }) => name),
      names,
    );
    for (const { key } of keys) assert.equal(key.length, 32);
  });
}

const notKeys: readonly (readonly [what: string, text: string, rule: RegExp])[] = [
  ['nothing', '', /no key/],
  ['comments alone', '# nothing here', /no key/],
  ['too few digits', 'a'.repeat(63), /entry 1/],
  ['too many digits', 'a'.repeat(65), /entry 1/],
  ['upper case', 'A'.repeat(64), /entry 1/],
  ['a name out of bounds', `${'n'.repeat(33)}:${hex('a')}`, /entry 1/],
  ['a name with a blank', `my key:${hex('a')}`, /entry 1/],
  ['the second of two broken', `a:${hex('a')}\nb:xyz`, /entry 2/],
  ['two of one name', `a:${hex('a')}\na:${hex('b')}`, /same name/],
  ['two without a name', `${hex('a')}\n${hex('b')}`, /same name/],
];

for (const [what, text, rule] of notKeys) {
  test(`master keys are rejected without showing them: ${what}`, () => {
    assert.throws(
      () => parseMasterKeys(text),
      (error) => {
        assert.ok(error instanceof RangeError);
        assert.match(error.message, rule);
        return !/[a-fA-F0-9]{16}/.test(error.message);
      },
    );
  });
}

test('a new master key can be parsed and differs each time', () => {
  const [one, other] = [newMasterKeyText(), newMasterKeyText()];
  assert.equal(parseMasterKeys(one).length, 1);
  assert.notEqual(one, other);
});
