import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';
import {
  begunS,
  commit,
  digestsOf,
  filingAt,
  type SaltedBundle,
  type SaltedRecord,
  salted,
  smallLog,
  sortedJson,
} from './small-log.ts';

const photograph = { name: '正面.jpg', sha256: 'ab'.repeat(32) };
const attachments = JSON.stringify([photograph]);
const log = smallLog(4);
const record = salted(filingAt(begunS + 5, 5), { attachments });
const index = log.record(record);
const good = log.saltedBundle(index);
const priceless = log.saltedBundle(index, ['price']);
const { text: bare, opened: openedBare } = salted(filingAt(begunS + 6, 6));

/** What is proven, or `KIND: what`. */
function verdict(bundle: unknown, { keys } = log) {
  const found = verifyBundle(JSON.stringify(bundle), { keys: keys.map(({ vkey }) => readVerifierKey(vkey)) });
  return found.isProven ? found.proven : `${found.kind}: ${found.what}`;
}

function assertFinding(bundle: unknown, expected: RegExp, of = log): void {
  const found = verdict(bundle, of);
  assert.match(typeof found === 'string' ? found : 'proven', expected);
}

test('a bundle that discloses all proves every member, and who filed it', () => {
  const proven = verdict(good);
  assert.ok(typeof proven === 'object', String(proven));
  const { filingNo, timestamp, ...members } = JSON.parse(filingAt(begunS + 5, 5).text);
  assert.deepEqual(Object.fromEntries(proven.record.members), {
    ...{ ...members, filingNo, timestamp, attachments },
    caller: 'Gallery One',
  });
  assert.deepEqual([proven.record.hidden, proven.hash], [[], record.hash]);
  assert.deepEqual([proven.record.number, proven.index, proven.timeS], [filingNo, index, begunS + 5]);
});

for (const hidden of [['price'], ['author', 'attachments'], Object.keys(record.opened)]) {
  test(`a bundle without ${hidden} is proven, and lists what it hides`, () => {
    const proven = verdict(log.saltedBundle(index, hidden));
    assert.ok(typeof proven === 'object', String(proven));
    assert.deepEqual(proven.record.hidden.toSorted(), hidden.toSorted());
    for (const name of hidden) assert.ok(!proven.record.members.has(name), name);
    assert.equal(proven.record.members.get('caller'), 'Gallery One');
    assert.equal(proven.hash, undefined);
  });
}

test('a bundle that hides only attachments has the evidence hash, which does not cover them', () => {
  const proven = verdict(log.saltedBundle(index, ['attachments']));
  assert.ok(typeof proven === 'object', String(proven));
  assert.deepEqual([proven.record.hidden, proven.hash], [['attachments'], record.hash]);
});

test('a filing without attachments is proven, and hides nothing', () => {
  const own = smallLog(4);
  const proven = verdict(own.saltedBundle(own.record(salted(filingAt(begunS + 5, 5)))), own);
  assert.ok(typeof proven === 'object', String(proven));
  assert.deepEqual([proven.record.hidden, proven.record.members.has('attachments')], [[], false]);
});

/** The good bundle with another disclosure of a member. */
const disclosing = (name: string, changes: object): object => ({
  ...good,
  disclosed: { ...good.disclosed, [name]: { ...good.disclosed[name], ...changes } },
});

/** The record with other members. */
const recordWith = (changes: object): string => sortedJson({ ...JSON.parse(record.text), ...changes });

const digests = digestsOf(record.opened);
const { author, era } = good.disclosed;
const forgedAuthor = { salt: '00'.repeat(16), value: 'Zhang Daqian' };
const { author: forgedDigest } = digestsOf({ author: forgedAuthor });
/** A record of another author, its disclosure, and the hash that fits. */
const forged = {
  record: recordWith({ author: forgedDigest }),
  hash: salted(filingAt(begunS + 5, 5, { author: forgedAuthor.value })).hash,
  disclosed: { ...good.disclosed, author: forgedAuthor },
};
const swapped = { author: era, era: author };
const otherRecord = /^HASH_MISMATCH: the leaf commits to another record/;
const otherAuthor = /^HASH_MISMATCH: the author in the bundle is not the one in the record/;

/** Lies about a filing that the log has, and what is found. */
const lies: Readonly<Record<string, readonly [bundle: object, expected: RegExp]>> = {
  'another digest of a disclosed member': [{ ...good, record: forged.record }, otherAuthor],
  'another digest of a hidden member': [
    { ...priceless, record: recordWith({ price: forgedDigest }) },
    otherRecord,
  ],
  'another caller': [{ ...good, record: recordWith({ caller: 'Gallery Two' }) }, otherRecord],
  'another filing number': [
    { ...priceless, record: recordWith({ filingNo: 'AS-2026-000001' }) },
    otherRecord,
  ],
  'another time': [
    { ...priceless, record: recordWith({ timestamp: '2025-11-21T09:15:05+08:00' }) },
    otherRecord,
  ],
  'another salt': [disclosing('author', { salt: '00'.repeat(16) }), otherAuthor],
  'another value': [disclosing('author', { value: 'Zhang Daqian' }), otherAuthor],
  'another price': [disclosing('price', { value: '128000001' }), /^HASH_MISMATCH: the price in/],
  'other attachments': [
    disclosing('attachments', { value: JSON.stringify([{ ...photograph, name: 'back.jpg' }]) }),
    /^HASH_MISMATCH: the attachments in/,
  ],
  'a value that begins with a part of its salt': [
    disclosing('author', { salt: author?.salt.slice(0, 30), value: `${author?.salt.slice(30)}Qi Baishi` }),
    /^MALFORMED: the salt of disclosed author/,
  ],
  'another author and its digest': [{ ...good, ...forged }, otherRecord],
  'such a record and its own leaf': [
    { ...good, ...forged, leaf: commit({ ...record, text: forged.record }).data },
    /^NOT_INCLUDED: /,
  ],
  'members under the names of others': [
    { ...good, disclosed: { ...good.disclosed, ...swapped } },
    /^HASH_MISMATCH: the (author|era) in the bundle/,
  ],
  'such members and their digests': [
    {
      ...{ ...priceless, disclosed: { ...priceless.disclosed, ...swapped } },
      record: recordWith({ author: digests.era, era: digests.author }),
    },
    otherRecord,
  ],
  'another evidence hash': [
    { ...good, hash: 'ab'.repeat(32) },
    /^HASH_MISMATCH: the record does not have the hash/,
  ],
  'the hash of its record': [
    { ...good, hash: JSON.parse(good.leaf).commitment },
    /^HASH_MISMATCH: the record does not have the hash/,
  ],
  'the evidence hash and a hidden price': [
    { ...priceless, hash: record.hash },
    /^MALFORMED: the bundle has a hash although it hides a member/,
  ],
  'no evidence hash and nothing hidden': [{ ...good, hash: undefined }, /^MALFORMED: the bundle lacks hash/],
  'nothing about what it discloses': [
    { ...good, disclosed: undefined },
    /^MALFORMED: the bundle lacks disclosed/,
  ],
  'a list of what it discloses': [{ ...good, disclosed: [author] }, /^MALFORMED: /],
  'a member that no record has': [
    disclosing('owner', forgedAuthor),
    /^MALFORMED: disclosed has unknown members: "owner"/,
  ],
  'a member that is no digest': [
    disclosing('caller', forgedAuthor),
    /^MALFORMED: disclosed has unknown members: "caller"/,
  ],
  'a member of version 1': [
    { ...good, salt: 'ab'.repeat(32) },
    /^MALFORMED: the bundle has unknown members: "salt"/,
  ],
  'a member too many in what it discloses': [
    disclosing('author', { note: 'trust me' }),
    /^MALFORMED: disclosed author has unknown members: "note"/,
  ],
  'a disclosure without a salt': [
    disclosing('author', { salt: undefined }),
    /^MALFORMED: disclosed author lacks salt/,
  ],
  'an upper-case salt': [
    disclosing('author', { salt: author?.salt.replace(/[0-9]/g, 'a').toUpperCase() }),
    /^MALFORMED: the salt of disclosed author/,
  ],
  'a long salt': [
    disclosing('author', { salt: 'ab'.repeat(32) }),
    /^MALFORMED: the salt of disclosed author/,
  ],
  'a price that is a number': [disclosing('price', { value: 128_000_000 }), /^MALFORMED: value of disclosed/],
  'half a surrogate pair': [disclosing('author', { value: '\ud800' }), /^MALFORMED: .*surrogate/],
};
for (const [name, [bundle, expected]] of Object.entries(lies)) {
  test(`a salted bundle with ${name} is found`, () => assertFinding(bundle, expected));
}

/** Checks a bundle of a record that its log really has. */
function assertLogged(logged: SaltedRecord, expected: RegExp, changes: object = {}): void {
  const own = smallLog(4);
  const bundle: SaltedBundle = own.saltedBundle(own.record(logged));
  assertFinding({ ...bundle, ...changes }, expected, own);
}

/** The record with another text of a member, and the digest of it. */
function withValue(name: string, value: string): SaltedRecord {
  const opened = { ...record.opened, [name]: { salt: 'ab'.repeat(16), value } };
  return { ...record, opened, text: recordWith({ [name]: digestsOf(opened)[name] }) };
}

for (const price of ['0128000000', '128000000.0', '1.28e8', '-1', '+1', ' 1', '', '9007199254740992', '1n'])
  test(`a price of ${JSON.stringify(price)} is malformed, although its log has it`, () =>
    assertLogged(withValue('price', price), /^MALFORMED: disclosed price is not a whole number/));

test('the highest price is proven', () => {
  const highest = salted(filingAt(begunS + 5, 5, { price: 2 ** 53 - 1 }), { attachments });
  assertLogged(highest, /^proven$/);
});

const { name: fileName, sha256 } = photograph;
for (const [name, value] of Object.entries({
  'a text': '"front.jpg"',
  'an object': JSON.stringify(photograph),
  'a list of texts': '["front.jpg"]',
  'a space': JSON.stringify([photograph], undefined, 1),
  'members in another order': JSON.stringify([{ sha256, name: fileName }]),
  'an escape that is not needed': attachments.replace('jpg', '\\u006apg'),
  'a member twice': attachments.replace('{', '{"name":"back.jpg",'),
  'a member too many': JSON.stringify([{ ...photograph, size: 1 }]),
  'a member too few': JSON.stringify([{ name: fileName }]),
  'an upper-case digest': JSON.stringify([{ ...photograph, sha256: sha256.toUpperCase() }]),
  'a short digest': JSON.stringify([{ ...photograph, sha256: sha256.slice(2) }]),
  'a name that is a number': JSON.stringify([{ ...photograph, name: 1 }]),
  'half a surrogate pair': JSON.stringify([{ ...photograph, name: '\ud800' }]),
  'text after the end': `${attachments}]`,
}))
  test(`attachments with ${name} are malformed, although their log has them`, () =>
    assertLogged(withValue('attachments', value), /^MALFORMED: .*attachments/));

const { caller: _, ...nameless } = JSON.parse(record.text);
const { era: __, ...eraless } = JSON.parse(record.text);
for (const [name, text] of Object.entries({
  'no caller': sortedJson(nameless),
  'a member too few': sortedJson(eraless),
  'a member too many': recordWith({ owner: digests.author }),
  'another version': recordWith({ version: 3 }),
  'a version as text': recordWith({ version: '2' }),
  'an upper-case digest': recordWith({ author: 'AB'.repeat(32) }),
  'a short digest': recordWith({ author: 'ab'.repeat(31) }),
  'a text instead of a digest': recordWith({ author: 'Qi Baishi' }),
  'a caller that is a number': recordWith({ caller: 1 }),
  'a space': record.text.replace(':', ': '),
  'members in another order': JSON.stringify(
    Object.fromEntries(Object.entries(JSON.parse(record.text)).toReversed()),
  ),
}))
  test(`a salted record with ${name} is malformed, although its log has it`, () =>
    assertLogged({ ...record, text }, /^MALFORMED: /));

test('a record without attachments discloses none', () => {
  const { attachments: extra } = record.opened;
  assertLogged(
    { ...record, text: bare, opened: { ...openedBare, ...(extra && { attachments: extra }) } },
    /^MALFORMED: disclosed has unknown members: "attachments"/,
  );
});

test('a bundle has a record of its own version', () => {
  const own = smallLog(4);
  const asVersion1 = own.bundle(own.record({ ...filingAt(begunS + 5, 5), text: record.text }));
  assertFinding(asVersion1, /^MALFORMED: the record has unknown members: .*"caller"/, own);
  const unsalted = { ...record, text: filingAt(begunS + 5, 5).text };
  assertFinding(own.saltedBundle(own.record(unsalted)), /^MALFORMED: the record lacks caller, version/, own);
  for (const [bundle, version] of [
    [good, 1],
    [log.bundle(1), 2],
    [good, 3],
    [good, '2'],
  ] as const)
    assertFinding({ ...bundle, version }, /^MALFORMED: /);
});

test('no salted bundle with one changed character is proven', () => {
  const text = JSON.stringify(priceless);
  const keys = log.keys.map(({ vkey }) => readVerifierKey(vkey));
  // Each third one: any change has to be found, and all would take long.
  for (let at = 0; at < text.length; at += 3) {
    const changed = `${text.slice(0, at)}${text[at] === '0' ? '1' : '0'}${text.slice(at + 1)}`;
    assert.equal(verifyBundle(changed, { keys }).isProven, false, changed);
  }
});
