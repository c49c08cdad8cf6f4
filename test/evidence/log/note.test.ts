import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readCheckpoint, signCheckpoint } from '../../../src/evidence/log/checkpoint.ts';
import {
  isKeyName,
  isSignedBy,
  NoteMalformed,
  readNote,
  readVerifierKey,
  signingKey,
} from '../../../src/evidence/log/note.ts';

// The examples of the C2SP specifications signed-note and tlog-checkpoint.
const exampleKey = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
const exampleText = 'This is an example message.\n';
const exampleSignature =
  '— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';
const example = `${exampleText}\n${exampleSignature}`;
const sofa = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
`;

// The first test vector of RFC 8032, section 7.1.
const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex');
const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

describe('signed notes', () => {
  test('the example of the specification is read and verified', () => {
    const note = readNote(example);
    assert.equal(note.text, exampleText);
    assert.equal(isSignedBy(note, [readVerifierKey(exampleKey)]), true);
  });

  test('a key is written with the id and the public key that belong to its seed', () => {
    const { vkey } = signingKey('log.example', seed);
    const [name, keyId, base64] = vkey.split('+', 3);
    assert.deepEqual([name, keyId?.length], ['log.example', 8]);
    // The base64 may have a + of its own.
    assert.equal(
      Buffer.from(vkey.slice(`${name}+${keyId}+`.length), 'base64').toString('hex'),
      `01${publicKey}`,
    );
    assert.ok(base64);
    assert.equal(readVerifierKey(vkey).keyId, keyId);
  });

  test('what one key signed verifies with it, beside signatures of others, and with no other key', () => {
    const [one, other] = [signingKey('log.example', seed), signingKey('log.example', seed.toReversed())];
    const text = 'several\n\nparagraphs\n';
    const note = readNote(`${text}\n${one.sign(text)}${exampleSignature}`);
    assert.equal(note.text, text);
    assert.equal(isSignedBy(note, [readVerifierKey(one.vkey)]), true);
    assert.equal(isSignedBy(note, [readVerifierKey(other.vkey)]), false);
    assert.equal(isSignedBy(note, []), false);
  });

  test('a bad signature of a known key spoils the note, even beside a good one', () => {
    const [one, other] = [signingKey('log.example', seed), signingKey('log.example', seed.toReversed())];
    const note = readNote(`a\n\n${one.sign('a\n')}${other.sign('b\n')}`);
    const keys = [one, other].map(({ vkey }) => readVerifierKey(vkey));
    assert.throws(() => isSignedBy(note, keys), NoteMalformed);
  });

  const line = exampleSignature.slice(0, -1);
  for (const [what, note] of [
    ['empty', ''],
    ['without signatures', 'text\n'],
    ['without a blank line', `text\n${exampleSignature}`],
    ['with nothing behind its blank line', 'text\n\n'],
    ['cut off in its last line', `${exampleText}\n${line}`],
    ['with a hyphen in the place of the dash', example.replace('—', '-')],
    ['with two spaces', example.replace('foo ', 'foo  ')],
    ['with a key name that has a plus', example.replace('example.com/foo U', 'example.com+foo U')],
    ['with base64 that has no padding', example.replace('=\n', '\n')],
    ['with base64 whose last bits are set', example.replace('QM=', 'QN=')],
    ['with URL-safe base64', example.replace('/foo Uw2', '/foo Uw-')],
    ['with a signature of no bytes', `text\n\n— name ${Buffer.alloc(4).toString('base64')}\n`],
    ['with a carriage return', example.replace('.\n', '.\r\n')],
    ['with a tab', example.replace('an ', 'an\t')],
    ['with a lone surrogate', example.replace('an ', 'an \ud800')],
    ['with too many signatures', `text\n\n${exampleSignature.repeat(101)}`],
    ['too long', `${'a'.repeat(1_000_000)}\n\n${exampleSignature}`],
  ] as const)
    test(`a note ${what} is none`, () => {
      assert.throws(() => readNote(note), NoteMalformed);
    });

  for (const vkey of [
    '',
    'example.com/foo',
    exampleKey.replace('530d903a', '530D903A'),
    exampleKey.replace('530d903a', '530d903b'),
    exampleKey.replace('example', 'other'),
    exampleKey.replace('+Ae', '+Be'),
    exampleKey.slice(0, -4),
    `${exampleKey}\n`,
    exampleKey.replace('example.com/foo', 'example com'),
  ])
    test(`${JSON.stringify(vkey)} is no verifier key`, () => {
      assert.throws(() => readVerifierKey(vkey), NoteMalformed);
    });

  test('names of keys have no blanks, plus and control characters', () => {
    for (const name of ['', 'a b', 'a+b', 'a\u00a0b', 'a\u2003b', 'a\u0000'])
      assert.equal(isKeyName(name), false);
    for (const name of ['a', 'log.example/日志', 'artseal.invalid/00']) assert.equal(isKeyName(name), true);
  });
});

describe('checkpoints', () => {
  const root = Buffer.from('CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=', 'base64');

  test('the example of the specification is read', () => {
    const { origin, size, root: read, isSigned } = readCheckpoint(sofa, []);
    assert.deepEqual([origin, size, isSigned], ['example.com/behind-the-sofa', 20_852_163, false]);
    assert.deepEqual(Buffer.from(read), root);
  });

  test('it is written to the letter, with a line of each key', () => {
    const keys = [signingKey('log.example', seed), signingKey('log.example', seed.toReversed())];
    const { note } = signCheckpoint({ origin: 'log.example', size: 7, root }, keys);
    const text = `log.example\n7\n${root.toString('base64')}\n`;
    assert.equal(note, `${text}\n${keys.map((key) => key.sign(text)).join('')}`);
    for (const { vkey } of keys) assert.equal(readCheckpoint(note, [readVerifierKey(vkey)]).isSigned, true);
  });

  for (const [what, from, to] of [
    ['no origin', 'example.com/behind-the-sofa\n2', '\n2'],
    ['a size with a leading zero', '\n2085', '\n02085'],
    ['a negative size', '\n2085', '\n-2085'],
    ['a size that is no exact number', '20852163', '9007199254740993'],
    ['a root that is too short', 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=', 'CsUYapGGPo4dkMgI'],
    ['no root', 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n', ''],
    ['an empty line in its text', 'q2I=\n', 'q2I=\n\nmore\n'],
  ] as const)
    test(`a checkpoint with ${what} is none`, () => {
      assert.throws(() => readCheckpoint(sofa.replace(from, to), []), NoteMalformed);
    });
});
