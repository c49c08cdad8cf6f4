import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  doubtOf,
  type FailureKind,
  readVerifierKey,
  verifyBundle,
} from '../../../src/evidence/verifier/index.ts';
import { noteKey } from '../../support/note-keys.ts';
import {
  actAt,
  begunS,
  commit,
  filingAt,
  type SmallBundle,
  SmallLog,
  smallLog,
  sortedJson,
  transferAt,
} from './small-log.ts';

const log = smallLog(20);
const good = log.bundle(7);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const keysOf = ({ keys }: SmallLog) => keys.map(({ vkey }) => readVerifierKey(vkey));

/** The verdict on a bundle: what is proven, or `KIND: what`. */
function verdict(bundle: unknown, of = log) {
  const text = typeof bundle === 'string' ? bundle : JSON.stringify(bundle);
  const found = verifyBundle(text, { keys: keysOf(of) });
  return found.isProven ? found.proven : `${found.kind}: ${found.what}`;
}

function assertFinding(bundle: unknown, expected: RegExp, of = log): void {
  const found = verdict(bundle, of);
  assert.match(typeof found === 'string' ? found : 'proven', expected);
}

test('a good bundle proves record, time, log, and who signed', () => {
  const proven = verdict(good);
  assert.ok(typeof proven === 'object');
  const { record, checkpoint, signers, hash, timeS, index, isOfPin } = proven;
  assert.deepEqual([record.kind, record.number, record.sequence], ['FILING', 'AS-2026-000007', 1]);
  assert.deepEqual([record.members.get('author'), record.members.get('price')], ['Qi Baishi', 128_000_000]);
  assert.deepEqual([checkpoint.origin, checkpoint.size], ['log.example/artworks', 21]);
  assert.deepEqual(signers, keysOf(log));
  assert.deepEqual([hash, timeS, index, isOfPin], [good.hash, begunS + 7, 7, undefined]);
});

test('white space and the order of members do not matter, so a bundle may be formatted', () => {
  assert.equal(typeof verdict(JSON.stringify(good, undefined, 2)), 'object');
  assert.equal(typeof verdict(` \r\n\t${sortedJson({ ...good })} \n`), 'object');
});

test('a TRANSFER is proven like a filing', () => {
  const own = smallLog(3);
  const index = own.record(transferAt(begunS + 9, 'AS-2026-000002', 2));
  const proven = verdict(own.bundle(index), own);
  assert.ok(typeof proven === 'object', String(proven));
  const { kind, number, sequence } = proven.record;
  assert.deepEqual([kind, number, sequence, proven.timeS], ['TRANSFER', 'AS-2026-000002', 2, begunS + 9]);
});

test('a TRANSFER that is dated after its leaf is rejected, and one dated long before it is reported', () => {
  const own = smallLog(3);
  const dated = (at: string, sequence: number) => {
    const logged = transferAt(begunS + 9, 'AS-2026-000002', sequence);
    const text = sortedJson({ at, event: 'TRANSFER', filingNo: logged.number, sequence });
    return verdict(own.bundle(own.record({ ...logged, text })), own);
  };
  assert.match(
    String(dated('2026-11-23', 2)),
    /^HASH_MISMATCH: the record is dated 2026-11-23, and its leaf/,
  );
  for (const [at, doubt] of [
    ['2026-11-21', undefined],
    ['2026-11-20', undefined],
    ['2019-01-01', /dated 2019-01-01, and was logged 2026-11-21T/],
  ] as const) {
    const proven = dated(at, 3);
    assert.ok(typeof proven === 'object', String(proven));
    if (doubt === undefined) assert.equal(doubtOf(proven), undefined, at);
    else assert.match(doubtOf(proven) ?? '', doubt);
  }
});

/** The record of an earlier day under another name: what the owner of the database could change. */
const backdated = filingAt(begunS - 86_400, 7, { author: 'Zhang Daqian' });

/** A log of the same leaves with another key. */
function otherLog(): SmallLog {
  const other = new SmallLog(log.origin);
  other.leaves.push(...log.leaves);
  return other;
}

/** A record with the leaf that it would have, and the proof of another one. */
function leafFor(record: Parameters<typeof commit>[0]): Partial<SmallBundle> {
  const { salt, data } = commit(record);
  const saltText = Buffer.from(salt).toString('hex');
  return { record: record.text, hash: sha256(record.text), salt: saltText, leaf: data };
}

/** Lies about one leaf, and what is found. */
const lies: Readonly<Record<string, readonly [kind: FailureKind, changes: Partial<SmallBundle>]>> = {
  'the record of an earlier day': ['HASH_MISMATCH', { record: backdated.text, hash: sha256(backdated.text) }],
  'such a record and its own leaf': ['NOT_INCLUDED', leafFor(backdated)],
  'a changed record': ['HASH_MISMATCH', { record: good.record.replace('Qi Baishi', 'Qi Baish1') }],
  'a changed salt': ['HASH_MISMATCH', { salt: '00'.repeat(32) }],
  'a changed leaf': ['HASH_MISMATCH', { leaf: good.leaf.replace(/"time":\d+/, `"time":${begunS}`) }],
  'a proof for another index': ['NOT_INCLUDED', { proof: log.proof(8) }],
  'another index over its own proof': ['NOT_INCLUDED', { proof: good.proof.replace('index 7', 'index 6') }],
  'a tree that ends before the leaf': [
    'NOT_INCLUDED',
    { proof: `${good.proof.split('\n\n')[0]}\n\n${log.checkpoint(5)}` },
  ],
  'the checkpoint of another key': ['BAD_SIGNATURE', { proof: log.proof(7, 21, otherLog().checkpoint()) }],
  'a checkpoint of another size': ['BAD_SIGNATURE', { proof: good.proof.replace('\n21\n', '\n20\n') }],
};
for (const [name, [kind, changes]] of Object.entries(lies)) {
  test(`a bundle with ${name} is ${kind}`, () =>
    assertFinding({ ...good, ...changes }, new RegExp(`^${kind}: `)));
}

/** The text of a good bundle with one part of it replaced, which has to be in it. */
function replaced(from: string, to: string): string {
  const text = JSON.stringify(good);
  assert.ok(text.includes(from), from);
  return text.replace(from, to);
}

const malformed: Readonly<Record<string, unknown>> = {
  'nothing at all': '',
  'no object': '[]',
  'no JSON': '{',
  'text after its end': `${JSON.stringify(good)}x`,
  'a byte order mark': `\ufeff${JSON.stringify(good)}`,
  'a comma too many': replaced('"version":1,', '"version":1,,'),
  'a member too many': { ...good, note: 'trust me' },
  'a member twice': replaced('"version":1,', '"version":1,"version":1,'),
  'the same member, written otherwise, twice': replaced('"version":1,', '"version":1,"\\u0076ersion":1,'),
  'a list': { ...good, salt: [good.salt] },
  'a truth value': { ...good, version: true },
  'another format': { ...good, format: 'artseal' },
  'another version': { ...good, version: 2 },
  'a version with a fraction': replaced('"version":1', '"version":1.0'),
  'half a surrogate pair': { ...good, format: '\ud800' },
  'upper-case hex': { ...good, hash: good.hash.toUpperCase() },
  'a salt that is too short': { ...good, salt: good.salt.slice(2) },
  'a proof of another version': { ...good, proof: good.proof.replace('@v1', '@v2') },
  'a proof with extra data': { ...good, proof: good.proof.replace('index', 'extra AAAA\nindex') },
  'an index with a leading zero': { ...good, proof: good.proof.replace('index 7', 'index 07') },
  'an index beyond 2^53-1': { ...good, proof: good.proof.replace('index 7', 'index 9007199254740992') },
  '64 hashes': {
    ...good,
    proof: good.proof.replace('index 7\n', `index 7\n${`${'A'.repeat(43)}=\n`.repeat(64)}`),
  },
  'more than a million characters': { ...good, format: 'x'.repeat(2 ** 20) },
};

for (const [name, bundle] of Object.entries(malformed)) {
  test(`a bundle with ${name} is malformed`, () => assertFinding(bundle, /^MALFORMED: /));
}

for (const name of Object.keys(good)) {
  test(`a bundle without ${name} is malformed`, () =>
    assertFinding({ ...good, [name]: undefined }, /^MALFORMED: .*(lacks|its format|another version)/));
}

/** A bundle of a log that accepted this text: only its form is wrong. */
function withRecord(text: string, own = smallLog(2)): [SmallBundle, SmallLog] {
  const index = own.record({ ...filingAt(begunS + 3, 3), text });
  return [own.bundle(index), own];
}

const filing = filingAt(begunS + 3, 3).text;
const strange: Readonly<Record<string, string>> = {
  'a space': filing.replace(':', ': '),
  'members in another order': JSON.stringify(
    Object.fromEntries(Object.entries(JSON.parse(filing)).toReversed()),
  ),
  'an escape that is not needed': filing.replace('Qi', '\\u0051i'),
  'an escaped slash': filing.replace('Qi', 'Qi\\/'),
  'a price of 1e3': filing.replace('128000000', '1e3'),
  'a price of -0': filing.replace('128000000', '-0'),
  'a price of -1': filing.replace('128000000', '-1'),
  'a price of 1.5': filing.replace('128000000', '1.5'),
  'a price beyond 2^53-1': filing.replace('128000000', '9007199254740993'),
  'a price with a leading zero': filing.replace('128000000', '0128000000'),
  'a member twice': filing.replace('{', '{"author":"Qi Baishi",'),
  'a member too many': filing.replace('{', '{"appraiser":"me",'),
  'a member too few': filing.replace('"era":"1947",', ''),
  'half a surrogate pair': filing.replace('Qi', '\\ud800'),
  'a number that is no filing number': filing.replace('AS-2026-000003', 'AS-2026-3'),
  'a timestamp in UTC': filing.replace('+08:00', 'Z'),
  'a day that there is not': filing.replace('2026-11-21', '2026-02-30'),
  'an event that is not known': '{"at":"2026-11-21","event":"LOST","filingNo":"AS-2026-000003","sequence":2}',
  'the sequence of a filing':
    '{"at":"2026-11-21","event":"TRANSFER","filingNo":"AS-2026-000003","sequence":1}',
};
for (const [name, text] of Object.entries(strange)) {
  test(`a record with ${name} is malformed, although its log has it`, () => {
    assertFinding(withRecord(text)[0], /^MALFORMED: /);
  });
}

/** Leaves that differ from their record, in a log that contains them. */
const leaves: Readonly<
  Record<string, readonly [changes: Readonly<Record<string, unknown>>, expected: RegExp]>
> = {
  'another number': [{ number: 'AS-2026-000099' }, /^HASH_MISMATCH: the number of the record/],
  'another time': [
    { time: begunS + 4 },
    /^HASH_MISMATCH: the record says that it was filed at 2026-11-21T01:15:03Z, its/,
  ],
  'another kind': [{ kind: 'TRANSFER', sequence: 2 }, /^HASH_MISMATCH: the kind/],
  'another sequence for a filing': [{ sequence: 2 }, /^MALFORMED: /],
  'another commitment': [
    { commitment: 'ab'.repeat(32) },
    /^HASH_MISMATCH: the leaf commits to another record/,
  ],
  'another version': [{ version: 2 }, /^MALFORMED: the leaf is of version 2/],
  'a member too many': [{ author: 'Qi Baishi' }, /^MALFORMED: the leaf has unknown members: "author"/],
  'a time beyond all dates': [{ time: 2 ** 53 - 1 }, /^MALFORMED: the time/],
};
for (const [name, [changes, expected]] of Object.entries(leaves)) {
  test(`a leaf with ${name} than the record is rejected, although the log has it`, () => {
    const own = smallLog(2);
    const record = filingAt(begunS + 3, 3);
    const { salt, data } = commit(record);
    const leaf = sortedJson({ ...JSON.parse(data), ...changes });
    const index = own.append(leaf);
    const hash = sha256(record.text);
    const bundle = { ...good, record: record.text, hash, salt: Buffer.from(salt).toString('hex'), leaf };
    assertFinding({ ...bundle, proof: own.proof(index) }, expected, own);
  });
}

test('the leaf of a log event does not prove a record', () => {
  const leaf = actAt('LOG_BEGUN', begunS, 1, { adopted: 0 });
  assertFinding({ ...good, leaf, proof: log.proof(0) }, /^HASH_MISMATCH: the leaf is a log event/);
});

test('a key of another name does not sign for this log', () => {
  const other = noteKey('log.example/other');
  const own = new SmallLog('log.example/artworks', [other]);
  assertFinding(
    own.bundle(own.record(filingAt(begunS))),
    /^BAD_SIGNATURE: .*log\.example\/artworks.*log\.example\/other/,
    own,
  );
});

test('no bundle with one changed byte is proven', () => {
  const bytes = Buffer.from(JSON.stringify(good));
  const keys = keysOf(log);
  let state = 42;
  const draw = (below: number) => {
    // The generator of Park and Miller: the same bytes in every run.
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  for (let run = 0; run < 1_000; run += 1) {
    const changed = Buffer.from(bytes);
    const at = draw(bytes.length);
    changed[at] = (changed[at] ?? 0) ^ (1 + draw(255));
    const text = new TextDecoder().decode(changed);
    assert.equal(verifyBundle(text, { keys }).isProven, false, `byte ${at}: ${text}`);
  }
});

test('a time stamp belongs to a tree of the same log with the same leaf at the same place', () => {
  const stamped = (proof: string, token = 'AAAA') => ({ ...good, timeStamp: { proof, token } });
  assertFinding(stamped(log.proof(8, 15)), /^NOT_INCLUDED: .*time stamp/);
  // The path of this leaf, called another index in a tree where that index has the same path.
  assertFinding(stamped(log.proof(7, 15).replace('index 7', 'index 6')), /^NOT_INCLUDED: .*time stamp/);
  // A signature of a given key, of another text.
  const forged = log.proof(7, 15).replace(log.checkpoint(15), log.checkpoint(15).replace('\n15\n', '\n16\n'));
  assertFinding(stamped(forged), /^(BAD_SIGNATURE|NOT_INCLUDED): /);
  const other = new SmallLog('log.example/other');
  assertFinding(
    stamped(log.proof(7, 15, other.checkpoint(15, log.tree().root(15)))),
    /^BAD_SIGNATURE: the checkpoint of the time stamp is of another log/,
  );
  assertFinding(stamped(log.proof(7, 15), 'AAA'), /^MALFORMED: /);
  assertFinding({ ...good, timeStamp: { proof: log.proof(7, 15) } }, /^MALFORMED: timeStamp lacks token/);
});

test('a bundle with two trees of one size is a fork if the log signed both, and else no evidence', () => {
  const forkedBy = (keys: SmallLog['keys']) => {
    const other = new SmallLog(log.origin, keys);
    other.leaves.push(...log.leaves.slice(0, -1), leafOf(filingAt(begunS + 20, 20)));
    return { ...good, timeStamp: { proof: other.proof(7), token: 'AAAA' } };
  };
  assertFinding(forkedBy(log.keys), /^FORKED: the log signed two different trees of 21 leaves/);
  assertFinding(forkedBy([noteKey(log.origin)]), /^BAD_SIGNATURE: .*is another tree of 21 leaves/);
  const same = { ...good, timeStamp: { proof: log.proof(7), token: 'AAAA' } };
  assert.equal(typeof verdict(same), 'object');
});

const leafOf = (record: Parameters<typeof commit>[0]): string => commit(record).data;
