import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildGoProgram, checkByGo } from '../clients/go-program.ts';
import { runCommand, serveCommand } from '../support/command.ts';
import { fileScope } from '../support/file-scope.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The commands of an outsider against a real registry, whose log nothing of theirs has written. */

const dataDir = temporaryFolder(fileScope);
const outside = temporaryFolder(fileScope);
const service = await serveCommand(fileScope, {
  ARTSEAL_DATA_DIR: dataDir,
  ARTSEAL_TLOG_ORIGIN: 'registry.example/log',
});
const platform = JSON.parse(readFileSync(join(dataDir, 'sandbox-credentials.json'), 'utf8'));
const logUrl = `${service.publicUrl}/log`;

/** Files an artwork, and gets the evidence of it: the text of the bundle. */
async function fileArtwork(author: string): Promise<string> {
  const body = JSON.stringify({ ...artwork, author });
  const filed = await send(service.publicUrl, platform, { target: '/api/v1/filing', body });
  assert.equal(filed.status, 200);
  const target = `/api/v1/filing/${filed.json.filingNo}/evidence`;
  const { status, text } = await send(service.publicUrl, platform, { method: 'GET', target });
  assert.equal(status, 200, text);
  return text;
}

const first = await fileArtwork('齐白石 🖌 "\\/');
const vkey = (await (await fetch(`${logUrl}/vkey`)).text()).trim();
const pin = join(outside, 'pin');

/** The file of a bundle. */
function kept(name: string, bundle: string): string {
  const file = join(outside, name);
  writeFileSync(file, bundle);
  return file;
}

test('evidence of a registry is verified, and moves the pin as the log grows', async () => {
  const words = (name: string, bundle: string) => [
    'verify',
    kept(name, bundle),
    '--key',
    vkey,
    '--pin',
    pin,
    '--log',
    logUrl,
  ];
  const one = await runCommand(words('first', first), {});
  assert.deepEqual([one.code, one.stderr], [0, '']);
  assert.match(one.stdout, /^VERIFIED: the filing AS-\d{4}-000001 is in the log, which dates it /);
  const other = await runCommand(words('second', await fileArtwork('Xu Beihong')), {});
  assert.deepEqual([other.code, other.stderr], [0, '']);
  assert.match(other.stdout, /^agrees with the pin, and replaces it$/m);
  const again = await runCommand(words('first', first), {});
  assert.deepEqual([again.code, again.stderr], [0, '']);
});

test('a bundle of a registry with an earlier day and another author in it is not verified', async () => {
  const bundle = JSON.parse(first);
  const record = bundle.record
    .replace(/"author":"[^,]*",/, '"author":"Zhang Daqian",')
    .replace(/"timestamp":"\d{4}/, '"timestamp":"1999');
  assert.notEqual(record, bundle.record);
  const hash = createHash('sha256').update(record).digest('hex');
  const forged = kept('forged', JSON.stringify({ ...bundle, record, hash }));
  const { code, stderr } = await runCommand(['verify', forged, '--key', vkey], {});
  assert.equal(code, 4, stderr);
});

test('the log of a registry is audited, and audited again as it grows', async () => {
  for (const from of [0, 5]) {
    const { code, stdout, stderr } = await runCommand(
      ['log', 'audit', logUrl, '--key', vkey, '--pin', join(outside, 'audited'), '--json'],
      {},
    );
    assert.deepEqual([code, stderr], [0, '']);
    const found = JSON.parse(stdout);
    assert.deepEqual([found.verified, found.origin], [true, 'registry.example/log']);
    assert.ok(from === 0 ? found.from === 0 : found.from > 0);
    await fileArtwork('Pan Tianshou');
  }
});

const { program, skip } = buildGoProgram(outside);

test('golang.org/x/mod/sumdb/{tlog,note} say the same of the evidence of a registry', { skip }, () => {
  const { leaf, proof } = JSON.parse(first);
  const [head = '', ...note] = String(proof).split('\n\n');
  const [, indexLine = '', ...hashes] = head.split('\n');
  const claim = {
    ...{ vkeys: [vkey], note: note.join('\n\n'), leaf, index: Number(indexLine.replace('index ', '')) },
    path: hashes.map((hash) => Buffer.from(hash, 'base64').toString('hex')),
  };
  assert.deepEqual(checkByGo(program, claim), ['good', 0]);
  assert.deepEqual(checkByGo(program, { ...claim, leaf: leaf.replace('FILING', 'FILED') }), [
    'invalid transparency proof',
    1,
  ]);
});
