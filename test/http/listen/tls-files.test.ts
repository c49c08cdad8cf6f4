import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTlsFiles, type TlsFiles } from '../../../src/http/listen/tls-files.ts';
import { makeAuthority, makeSelfSigned } from '../../support/certificates.ts';
import { fileScope } from '../../support/file-scope.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder(fileScope);
const authority = makeAuthority(fileScope);
const own = authority.issue('own', 30);
const other = makeSelfSigned(folder);

let files = 0;
function file(content: string): string {
  files += 1;
  const path = join(folder, `file-${files}`);
  writeFileSync(path, content);
  return path;
}

const good: TlsFiles = {
  certificate: file(own.certificate + authority.certificate),
  key: own.keyFile,
  clientCa: file(authority.certificate + other.certificate),
};

const sealed = createPrivateKey(own.key).export({
  ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
});
const torn = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

/** A certificate whose RSA key is too short for OpenSSL. */
function weak(): Partial<TlsFiles> {
  const keys = generateKeyPairSync('rsa', { modulusLength: 512 });
  const { certificateFile, keyFile } = makeSelfSigned(temporaryFolder(fileScope), { keys });
  return { certificate: certificateFile, key: keyFile };
}

function pipe(): string {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

test('certificate, chain, key and authorities are read, and the validity of the first certificate', () => {
  const { certificate, key, clientCa, beginsAtMs, endsAtMs } = readTlsFiles(good);
  assert.equal(certificate, own.certificate + authority.certificate);
  assert.equal(key, own.key);
  assert.equal(clientCa, authority.certificate + other.certificate);
  assert.equal(endsAtMs - beginsAtMs, 30 * 86_400_000);
});

for (const [what, fault, named, why] of [
  [
    'a certificate that is not there',
    { certificate: join(folder, 'none') },
    'certificate',
    /none does not exist/,
  ],
  ['a folder', { key: folder }, 'key', /is not an ordinary file/],
  ['a pipe', { key: pipe() }, 'key', /is not an ordinary file/],
  ['an empty certificate', { certificate: file('') }, 'certificate', /certificate in PEM/],
  ['a key for a certificate', { certificate: own.keyFile }, 'certificate', /certificate in PEM/],
  [
    'a certificate for a key',
    { key: own.certificateFile },
    'key',
    /private key in PEM, without a passphrase/,
  ],
  ['a key with a passphrase', { key: file(String(sealed)) }, 'key', /without a passphrase/],
  ['the key of another certificate', { key: other.keyFile }, 'key', /private key of the first certificate/],
  [
    'the chain before the certificate',
    { certificate: file(authority.certificate + own.certificate) },
    'key',
    /first/,
  ],
  ['a chain that is torn', { certificate: file(own.certificate + torn) }, 'certificate', /cannot be used/],
  ['a weak key', weak(), 'certificate', /key too small/],
  ['no authority', { clientCa: file('') }, 'clientCa', /certificates of authorities in PEM/],
] as const) {
  test(`an unusable file is rejected by its name: ${what}`, () => {
    assert.throws(() => readTlsFiles({ ...good, ...fault }), {
      ...{ name: 'TlsFileError', file: named, message: why },
    });
  });
}
