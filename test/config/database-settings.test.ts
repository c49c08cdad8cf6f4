import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { confidentialFiles, trustedFiles } from '../../src/operations/registry.ts';
import { naming } from '../support/config-error.ts';

const url = 'postgres://artseal@db.example/artseal';

const files = {
  ARTSEAL_DATABASE_PASSWORD_FILE: '/keys/password',
  ARTSEAL_DATABASE_CA_FILE: '/keys/ca.pem',
  ARTSEAL_DATABASE_CERTIFICATE_FILE: '/keys/client.pem',
  ARTSEAL_DATABASE_KEY_FILE: '/keys/client-key.pem',
};

test('a database on PostgreSQL is a URL and the files of the connection', () => {
  assert.equal(readConfig({}).database, undefined);
  assert.equal(readConfig({ ARTSEAL_DATABASE_URL: url }).database?.url, url);
  assert.deepEqual(readConfig({ ARTSEAL_DATABASE_URL: url, ...files }).database, {
    url,
    passwordFile: '/keys/password',
    caFile: '/keys/ca.pem',
    certificateFile: '/keys/client.pem',
    keyFile: '/keys/client-key.pem',
  });
});

test('nobody else may change these files, and nobody else should read the secret ones', () => {
  const config = readConfig({ ARTSEAL_DATABASE_URL: url, ...files });
  const own = (paths: readonly string[]) => paths.filter((path) => path.startsWith('/keys/')).sort();
  assert.deepEqual(own(trustedFiles(config)), Object.values(files).sort());
  assert.deepEqual(own(confidentialFiles(config)), ['/keys/client-key.pem', '/keys/password']);
});

test('the files are rejected without a URL, and a certificate without its key', () => {
  for (const [variable, file] of Object.entries(files))
    assert.throws(() => readConfig({ [variable]: file }), naming('ARTSEAL_DATABASE_URL is required'));
  const { ARTSEAL_DATABASE_CERTIFICATE_FILE, ARTSEAL_DATABASE_KEY_FILE } = files;
  const withUrl = (more: Record<string, string>) => () => readConfig({ ARTSEAL_DATABASE_URL: url, ...more });
  assert.throws(withUrl({ ARTSEAL_DATABASE_CERTIFICATE_FILE }), naming('ARTSEAL_DATABASE_KEY_FILE'));
  assert.throws(withUrl({ ARTSEAL_DATABASE_KEY_FILE }), naming('ARTSEAL_DATABASE_CERTIFICATE_FILE'));
});

test('a password in the URL is rejected and not repeated, as is another URL', () => {
  const rejected = [
    'postgres://artseal:sesame@db.example/artseal',
    'postgres://artseal:ses/ame@db.example/artseal',
    'postgres://artseal@db.example/artseal?password=sesame',
  ];
  for (const text of rejected)
    assert.throws(
      () => readConfig({ ARTSEAL_DATABASE_URL: text }),
      (error: Error) =>
        /ARTSEAL_DATABASE_URL .*ARTSEAL_DATABASE_PASSWORD_FILE/.test(error.message) &&
        !/sesame|ses\/ame/.test(error.message),
    );
  for (const text of ['db.test', 'mysql://artseal@db.test/artseal', 'sesame'])
    assert.throws(
      () => readConfig({ ARTSEAL_DATABASE_URL: text }),
      ({ message }: Error) => /must be the URL of a database/.test(message) && !message.includes(text),
    );
});

test('Artseal takes no backups of PostgreSQL', () => {
  assert.throws(
    () => readConfig({ ARTSEAL_DATABASE_URL: url, ARTSEAL_BACKUP_DIR: '/backups' }),
    naming('ARTSEAL_BACKUP_DIR must not be set if ARTSEAL_DATABASE_URL is set'),
  );
});
