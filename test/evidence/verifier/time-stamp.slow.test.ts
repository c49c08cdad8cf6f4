import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeQuery, readReply } from '../../../src/evidence/formats/time-stamp.ts';
import { nonceBytes, parseAuthorities } from '../../../src/evidence/log/time-stamping.ts';
import { readBundle, readVerifierKey, verifyBundle } from '../../../src/evidence/verifier/index.ts';
import { readAuthorities, verifyTimeStamp } from '../../../src/evidence/verifier/time-stamp.ts';
import { makeSelfSigned } from '../../support/certificates.ts';
import { fileScope } from '../../support/file-scope.ts';
import { checkpointTextOf } from '../../support/note-keys.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  type AuthorityTerms,
  startTimeStampAuthority,
  type TimeStampAuthority,
  type TimeStampReplyLie,
} from '../../support/time-stamp-authority.ts';
import { tokenOver } from './attesting.ts';
import { type SmallBundle, SmallLog, smallLog } from './small-log.ts';

const log = smallLog(9);
const index = 3;
/** Of seven leaves: an earlier checkpoint than that of the bundle. */
const stampedProof = log.proof(index, 7);
const authority = await startTimeStampAuthority(fileScope);
const ca = readAuthorities(readFileSync(authority.caFile, 'utf8'));

/** A bundle with a token over the checkpoint of a proof. */
async function stamp(proof: string, by: TimeStampAuthority, lie?: TimeStampReplyLie): Promise<SmallBundle> {
  return {
    ...log.bundle(index),
    timeStamp: { proof, token: await tokenOver(checkpointTextOf(proof), by, lie) },
  };
}

const keys = log.keys.map(({ vkey }) => readVerifierKey(vkey));
const verdict = (bundle: SmallBundle) => {
  const found = verifyBundle(JSON.stringify(bundle), { keys });
  return found.isProven ? 'proven' : `${found.kind}: ${found.what}`;
};

/** Returns what the token proves, or what is wrong with it. */
async function stamped(bundle: SmallBundle, authorities = ca) {
  const { timeStamp } = readBundle(JSON.stringify(bundle));
  assert.ok(timeStamp);
  return verifyTimeStamp(timeStamp, authorities).catch((error) => `${error.kind}: ${error.message}`);
}

test('a time stamp proves by when the checkpoint existed, and names the authority', async () => {
  const bundle = await stamp(stampedProof, authority);
  assert.equal(verdict(bundle), 'proven');
  const found = await stamped(bundle);
  assert.ok(typeof found === 'object', String(found));
  assert.equal(found.authority, 'CN=authority of the test');
  // The authority states an accuracy of a second, and whole seconds.
  const aheadS = found.beforeS - Date.now() / 1000;
  assert.ok(aheadS > -60 && aheadS < 2, String(aheadS));
});

const lies = {
  SELF_SIGNED: /Validation of signer's certificate failed/,
  NOT_FOR_TIME_STAMPS: /not for time stamps alone/,
  UNNAMED_CERTIFICATE: /does not name its certificate/,
  OTHER_CERTIFICATE_NAMED: /does not name its certificate/,
  TOO_MANY_CERTIFICATES: /too many certificates/,
  ALTERED: /signature is not valid|digest doesn't match/,
  ANOTHER_IMPRINT: /over something else than this checkpoint/,
} as const satisfies Partial<Record<TimeStampReplyLie, RegExp>>;

test('a wrong time stamp is a bad signature', async () => {
  for (const [lie, expected] of Object.entries(lies)) {
    const found = String(await stamped(await stamp(stampedProof, authority, lie as TimeStampReplyLie)));
    assert.match(found, /^BAD_SIGNATURE: the time stamp is not valid: /, lie);
    assert.match(found, expected, lie);
  }
  const good = await stamp(stampedProof, authority);
  const other = readAuthorities(makeSelfSigned(temporaryFolder(fileScope)).certificate);
  assert.match(String(await stamped(good, other)), /Validation of signer's certificate failed/);
  const token = Buffer.from(good.timeStamp?.token ?? '', 'base64');
  const broken = [
    Buffer.of(0),
    token.subarray(0, -1),
    Buffer.concat([token, Buffer.of(0)]),
    Buffer.from('text'),
  ];
  for (const bytes of broken) {
    const bundle = { ...good, timeStamp: { proof: stampedProof, token: bytes.toString('base64') } };
    assert.match(String(await stamped(bundle)), /^BAD_SIGNATURE: the time stamp is not valid: /);
  }
});

test('a valid token over another checkpoint proves nothing', async () => {
  const good = await stamp(stampedProof, authority);
  const token = good.timeStamp?.token ?? '';
  const moved = { ...good, timeStamp: { proof: log.proof(index, 8), token } };
  assert.match(String(await stamped(moved)), /over something else than this checkpoint/);
});

test('a stamped checkpoint of a retired key is accepted, but not a forged signature of a given key', async () => {
  const earlier = new SmallLog(log.origin);
  earlier.leaves.push(...log.leaves);
  const bundle = await stamp(earlier.proof(index, 7), authority);
  assert.equal(verdict(bundle), 'proven');
  assert.equal(typeof (await stamped(bundle)), 'object');
  const forged = await stamp(`${stampedProof}${log.keys[0]?.line('another text\n')}`, authority);
  assert.match(verdict(forged), /^BAD_SIGNATURE: the checkpoint of the time stamp has a signature/);
});

test('a file without a readable certificate is malformed', () => {
  for (const pem of ['', 'text', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])
    assert.throws(() => readAuthorities(pem), { name: 'VerificationFailure', kind: 'MALFORMED' });
});

test('openssl accepts queries, and its replies are verified, with all key types and hashes', async (t) => {
  const text = 'artseal.test/log\n1\nroot\n';
  for (const terms of [{ ess: 'sha1', keys: 'rsa' }, { ess: 'sha512' }] satisfies AuthorityTerms[]) {
    const by = await startTimeStampAuthority(t, terms);
    const nonce = randomBytes(nonceBytes);
    const reply = Uint8Array.from(await by.reply(makeQuery(text, nonce)));
    const authorities = readFileSync(by.caFile, 'utf8');
    const expected = { text, nonce, authorities };
    for (const trusted of [undefined, authorities]) {
      const { token, timeMs } = await readReply(reply, { ...expected, authorities: trusted });
      assert.ok(Math.abs(Date.now() - timeMs) < 60_000);
      const cwd = temporaryFolder(t);
      writeFileSync(join(cwd, 'token'), token);
      writeFileSync(join(cwd, 'text'), text);
      const words = ['ts', '-verify', '-in', 'token', '-token_in', '-data', 'text', '-CAfile', by.caFile];
      execFileSync('openssl', words, { cwd, stdio: 'ignore' });
    }
    const other = makeSelfSigned(temporaryFolder(t)).certificate;
    await assert.rejects(
      readReply(reply, { ...expected, authorities: other }),
      /not valid: Validation of signer/,
    );
    await assert.rejects(readReply(reply, { ...expected, text: `${text} ` }), /over something else/);
    await assert.rejects(
      readReply(reply, { ...expected, nonce: randomBytes(nonceBytes) }),
      /the nonce differs/,
    );
  }
});

test('the server accepts only a file with readable certificates as authorities', (t) => {
  const { certificate } = makeSelfSigned(temporaryFolder(t));
  assert.equal(parseAuthorities(certificate), certificate);
  assert.throws(() => parseAuthorities('nothing'), /no certificate in PEM/);
  assert.throws(() => parseAuthorities(certificate.replace('MII', 'MIJ')));
});
