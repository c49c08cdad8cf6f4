import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { confidentialFiles, trustedFiles } from '../../src/operations/registry.ts';
import { makeSelfSigned } from '../support/certificates.ts';
import { naming } from '../support/config-error.ts';
import { fileScope } from '../support/file-scope.ts';
import { vkeyOf } from '../support/note-keys.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder(fileScope);
const vkey = (name: string, type = 4) => vkeyOf(name, type, generateKeyPairSync('ed25519').publicKey);

/** The settings that name a file of witnesses with that text. */
function witnessesIn(text: string, required?: string) {
  const file = join(folder, 'witnesses');
  writeFileSync(file, text);
  return {
    ARTSEAL_TLOG_WITNESSES_FILE: file,
    ...(required && { ARTSEAL_TLOG_WITNESSES_REQUIRED: required }),
  };
}

const [one, two] = [vkey('one.example/w'), vkey('two.example/w')];

test('a file of witnesses has a line for each', () => {
  const text = `# those who watch\n\n${one} https://one.example/submit/\r\n  ${two}\thttp://two.example \n`;
  const read = (required?: string) => readConfig(witnessesIn(text, required)).logWitnesses;
  assert.deepEqual(
    read()?.witnesses.map(({ key, url }) => [key.name, url]),
    [
      ['one.example/w', 'https://one.example/submit'],
      ['two.example/w', 'http://two.example'],
    ],
  );
  assert.deepEqual([read()?.required, read('2')?.required], [0, 2]);
});

test('a wrong file of witnesses is rejected, and the fault names the line', () => {
  for (const [text, message] of [
    ['# none\n', /names no witness/],
    [`${one}\n`, /line 1: has to be a verifier key, a space and a URL/],
    [`${one} https://one.example more\n`, /line 1: has to be a verifier key, a space and a URL/],
    [`${one} https://one.example\nkey https://two.example\n`, /line 2: a verifier key has to be/],
    [`${vkey('log.example', 1)} https://one.example\n`, /line 1: the verifier key .* for cosignatures/],
    [`${one} ftp://one.example\n`, /line 1: must be a URL/],
    [`${one} https://one.example\n${vkey('one.example/w')} https://other.example\n`, /one.example\/w twice/],
    [Array.from({ length: 17 }, (_, w) => `${vkey(`w${w}`)} https://w.example\n`).join(''), /more than 16/],
  ] as const) {
    assert.throws(() => readConfig(witnessesIn(text)), naming('ARTSEAL_TLOG_WITNESSES_FILE'));
    assert.throws(() => readConfig(witnessesIn(text)), { message });
  }
});

test('the required witnesses cannot be more than the given ones', () => {
  const env = witnessesIn(`${one} https://one.example\n`, '2');
  assert.throws(() => readConfig(env), naming('ARTSEAL_TLOG_WITNESSES_REQUIRED'));
});

test('filings on a rolled back log are rejected if witnesses are required, or as set', () => {
  const text = `${one} https://one.example\n`;
  const refuses = (required: string, set?: string) =>
    readConfig({
      ...witnessesIn(text, required),
      ...(set !== undefined && { ARTSEAL_TLOG_REFUSE_ROLLED_BACK: set }),
    }).logWitnesses?.refuseRolledBack;
  assert.deepEqual([refuses('0'), refuses('1')], [false, true]);
  assert.deepEqual([refuses('0', 'yes'), refuses('1', 'no'), refuses('1', '')], [true, false, true]);
  const alone = { ARTSEAL_TLOG_REFUSE_ROLLED_BACK: 'yes' };
  assert.throws(() => readConfig(alone), naming('ARTSEAL_TLOG_WITNESSES_FILE'));
});

test('a time-stamping authority has a URL, a period and certificates', () => {
  const { certificateFile, certificate } = makeSelfSigned(folder);
  const env = { ARTSEAL_TLOG_TSA_URL: 'http://stamp.example/tsr' };
  const terms = { url: 'http://stamp.example/tsr', everyMs: 3_600_000, authorities: undefined };
  assert.deepEqual(readConfig(env).logTimeStamps, terms);
  const all = { ...env, ARTSEAL_TLOG_TSA_EVERY: '1m', ARTSEAL_TLOG_TSA_CA: certificateFile };
  assert.deepEqual(readConfig(all).logTimeStamps, { ...terms, everyMs: 60_000, authorities: certificate });
  const alone = { ARTSEAL_TLOG_TSA_CA: certificateFile };
  assert.throws(() => readConfig(alone), naming('ARTSEAL_TLOG_TSA_URL'));
});

test('files of witnesses and authorities are public, and trusted; authorities are certificates', () => {
  const { certificateFile, certificate } = makeSelfSigned(folder);
  const hooks = join(folder, 'hooks.pem');
  writeFileSync(hooks, certificate);
  const config = readConfig({
    ...witnessesIn(`${one} https://one.example\n`),
    ARTSEAL_TLOG_TSA_URL: 'http://stamp.example',
    ARTSEAL_TLOG_TSA_CA: certificateFile,
    ARTSEAL_WEBHOOK_CA: hooks,
  });
  assert.equal(config.webhooks.authorities, certificate);
  for (const file of [join(folder, 'witnesses'), certificateFile, hooks]) {
    assert.ok(trustedFiles(config).includes(file));
    assert.ok(!confidentialFiles(config).includes(file));
  }
  for (const variable of ['ARTSEAL_TLOG_TSA_CA', 'ARTSEAL_WEBHOOK_CA'])
    for (const file of [join(folder, 'none'), import.meta.filename])
      assert.throws(() => readConfig({ [variable]: file }), naming(variable));
});
