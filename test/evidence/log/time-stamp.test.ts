import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeQuery, nonceBytes, parseAuthorities, readReply } from '../../../src/evidence/log/time-stamp.ts';
import { makeSelfSigned } from '../../support/certificates.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { type AuthorityTerms, startTimeStampAuthority } from '../../support/time-stamp-authority.ts';

const text = 'artseal.test/log\n1\nroot\n';

test('openssl reads a query, and its reply is verified, whatever keys and hashes it is made with', async (t) => {
  for (const terms of [{}, { ess: 'sha1', keys: 'rsa' }, { ess: 'sha512' }] satisfies AuthorityTerms[]) {
    const authority = await startTimeStampAuthority(t, terms);
    const nonce = randomBytes(nonceBytes);
    const reply = Uint8Array.from(await authority.reply(await makeQuery(text, nonce)));
    const ca = readFileSync(authority.caFile, 'utf8');
    const beforeMs = Date.now();
    for (const authorities of [undefined, ca]) {
      const { token, atMs } = await readReply(reply, { text, nonce, authorities });
      assert.ok(Math.abs(beforeMs - atMs) < 60_000);
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'token'), token);
      writeFileSync(join(folder, 'text'), text);
      const words = [
        'ts',
        '-verify',
        '-in',
        'token',
        '-token_in',
        '-data',
        'text',
        '-CAfile',
        authority.caFile,
      ];
      execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' });
    }
    const other = makeSelfSigned(temporaryFolder(t)).certificate;
    await assert.rejects(
      readReply(reply, { text, nonce, authorities: other }),
      /not good: Validation of signer/,
    );
    await assert.rejects(
      readReply(reply, { text: `${text} `, nonce, authorities: ca }),
      /over something else/,
    );
    await assert.rejects(
      readReply(reply, { text, nonce: randomBytes(nonceBytes), authorities: ca }),
      /the nonce differs/,
    );
  }
});

test('a file without a certificate is no file of authorities', (t) => {
  const { certificate } = makeSelfSigned(temporaryFolder(t));
  assert.equal(parseAuthorities(certificate), certificate);
  assert.throws(() => parseAuthorities('nothing'), /no certificate in PEM/);
  assert.throws(() => parseAuthorities(certificate.replace('MII', 'MIJ')));
});
