import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  findSigners,
  readCheckpoint,
  readLogProof,
  readNote,
  readVerifierKey,
} from '../../../src/evidence/formats/checkpoint.ts';
import { signCheckpoint, signingKey } from '../../../src/evidence/log/signing-keys.ts';

// The examples of c2sp.org/signed-note and c2sp.org/tlog-checkpoint.
const exampleKey = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
const exampleLine =
  '— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n';
const example = `This is an example message.\n\n${exampleLine}`;
const hash = 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=';
const sofa = `example.com/behind-the-sofa
20852163
${hash}

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
`;

// The first test vector of RFC 8032, section 7.1.
const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex');
const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

const isMalformed = { name: 'VerificationFailure', kind: 'MALFORMED' };
const [one, other] = [signingKey('log.example', seed), signingKey('log.example', seed.toReversed())];
const signers = (note: string, ...vkeys: readonly string[]) =>
  findSigners(readNote(note, 'it'), vkeys.map(readVerifierKey), 'it').map(({ vkey }) => vkey);

test('a signing key has the public key of its seed, and signs as its verifier key says', () => {
  assert.equal(Buffer.from(readVerifierKey(one.vkey).publicKey).toString('hex'), publicKey);
  const text = 'several\n\nparagraphs\n';
  const note = `${text}\n${one.sign(text)}${exampleLine}`;
  assert.equal(readNote(note, 'it').text, text);
  assert.deepEqual(signers(note, one.vkey, other.vkey), [one.vkey]);
  assert.deepEqual(signers(note), []);
});

test('the example of c2sp.org/signed-note is verified', () => {
  assert.deepEqual(signers(example, exampleKey), [exampleKey]);
  const altered = example.replace('example m', 'Example m');
  assert.throws(() => signers(altered, exampleKey), { kind: 'BAD_SIGNATURE' });
});

test('an invalid signature of a given key is a failure, even beside a valid one', () => {
  const note = `a\n\n${one.sign('a\n')}${other.sign('b\n')}`;
  assert.deepEqual(signers(note, one.vkey), [one.vkey]);
  assert.throws(() => signers(note, one.vkey, other.vkey), { kind: 'BAD_SIGNATURE' });
});

for (const [what, note] of [
  ['empty', ''],
  ['without signatures', 'text\n'],
  ['without a blank line', `text\n${exampleLine}`],
  ['with nothing after its blank line', 'text\n\n'],
  ['cut off in its last line', example.slice(0, -1)],
  ['with a hyphen in place of the dash', example.replace('—', '-')],
  ['with two spaces', example.replace('foo ', 'foo  ')],
  ['with a key name that has a plus', example.replace('example.com/foo U', 'example.com+foo U')],
  ['with base64 that has no padding', example.replace('=\n', '\n')],
  ['with base64 whose last bits are set', example.replace('QM=', 'QN=')],
  ['with URL-safe base64', example.replace('/foo Uw2', '/foo Uw-')],
  ['with a signature of no bytes', `text\n\n— name ${Buffer.alloc(4).toString('base64')}\n`],
  ['with a carriage return', example.replace('.\n', '.\r\n')],
  ['with a tab', example.replace('an ', 'an\t')],
  ['with a lone surrogate', example.replace('an ', 'an \ud800')],
  ['with too many signatures', `text\n\n${exampleLine.repeat(101)}`],
  ['that is too long', `${'a'.repeat(256 * 1024)}\n\n${exampleLine}`],
] as const)
  test(`a note ${what} is malformed`, () => {
    assert.throws(() => readNote(note, 'the note'), isMalformed);
  });

for (const [what, vkey] of Object.entries({
  'no plus': 'example.com/foo',
  'an empty name': exampleKey.replace('example.com/foo', ''),
  'a space in its name': exampleKey.replace('foo', 'f oo'),
  'a Unicode space in its name': exampleKey.replace('foo', 'f\u2003oo'),
  'another key ID': exampleKey.replace('530d903a', '530d903b'),
  'another name': exampleKey.replace('foo', 'fob'),
  'another key': exampleKey.replace('AekyeRrm', 'AekyeRrn'),
  'an unknown type': exampleKey.replace('AekyeRrm', 'BekyeRrm'),
  'an upper-case key ID': exampleKey.replace('530d903a', '530D903A'),
  'a newline after it': `${exampleKey}\n`,
  'a part missing': exampleKey.slice(0, -4),
}))
  test(`a verifier key with ${what} is malformed`, () => {
    assert.throws(() => readVerifierKey(vkey), isMalformed);
  });

test('a checkpoint is signed with a line of each key', () => {
  const root = Buffer.from(hash, 'base64');
  const { note } = signCheckpoint({ origin: 'log.example', size: 7, root }, [one, other]);
  const text = `log.example\n7\n${hash}\n`;
  assert.equal(note, `${text}\n${one.sign(text)}${other.sign(text)}`);
  assert.deepEqual(signers(note, one.vkey, other.vkey), [one.vkey, other.vkey]);
});

for (const [what, from, to] of [
  ['no origin', 'example.com/behind-the-sofa\n2', '\n2'],
  ['a size with a leading zero', '\n2085', '\n02085'],
  ['a negative size', '\n2085', '\n-2085'],
  ['a size that is not exact', '20852163', '9007199254740993'],
  ['a root that is too short', hash, 'CsUYapGGPo4dkMgI'],
  ['no root', `${hash}\n`, ''],
  ['an empty line in its text', 'q2I=\n', 'q2I=\n\nmore\n'],
] as const)
  test(`a checkpoint with ${what} is malformed`, () => {
    assert.throws(() => readCheckpoint(sofa.replace(from, to), 'the checkpoint'), isMalformed);
  });

test('the examples of c2sp.org/tlog-checkpoint and tlog-cosignature are read', () => {
  const cosignature =
    'jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==';
  const note = `${sofa}— witness.example.com/w1 ${cosignature}\n`;
  const checkpoint = readCheckpoint(note, 'the checkpoint');
  assert.deepEqual([checkpoint.origin, checkpoint.size], ['example.com/behind-the-sofa', 20_852_163]);
  assert.equal(Buffer.from(checkpoint.root).toString('base64'), hash);
  assert.deepEqual(
    checkpoint.signatures.map(({ keyName, keyId, signature: { length } }) => [keyName, keyId, length]),
    [
      ['example.com/behind-the-sofa', '033de0ae', 64],
      ['witness.example.com/w1', '8d66cf3f', 72],
    ],
  );
  const proof = readLogProof(`c2sp.org/tlog-proof@v1\nindex 73894\n${hash}\n\n${note}`, 'the proof');
  assert.deepEqual([proof.index, proof.path.length, proof.checkpoint.size], [73_894, 1, 20_852_163]);
});
