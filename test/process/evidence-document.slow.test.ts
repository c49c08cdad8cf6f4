import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { tokenOver } from '../evidence/verifier/attesting.ts';
import {
  digestsOf,
  type SaltedBundle,
  type SmallBundle,
  sortedJson,
} from '../evidence/verifier/small-log.ts';
import { fileArtwork, getEvidence } from '../support/calls.ts';
import { codeBlocks, documentText } from '../support/documents.ts';
import { exampleBundle, exampleKey, exampleOrigin, exampleSalted } from '../support/evidence-example.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { checkpointTextOf, noteKey } from '../support/note-keys.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startTimeStampAuthority } from '../support/time-stamp-authority.ts';

const skip = skipUnlessInstalled('python3', 'openssl');
const document = documentText('docs/evidence.md');

const blocks = (language: string) => codeBlocks(document, language);
const [example = ''] = blocks('json');
const [byOpenssl = '', bySteps = '', byProgram = ''] = blocks('sh');
const [printed = ''] = blocks('text');
const [program = ''] = blocks('python');

/** A folder with the bundle and the program, under the names that the page uses. */
function folderOf(t: TestContext, bundle: string = example): string {
  const folder = join(temporaryFolder(t), 'evidence');
  mkdirSync(folder);
  writeFileSync(join(folder, 'bundle.json'), bundle);
  writeFileSync(join(folder, 'check.py'), program);
  return folder;
}

/** Checks a bundle with the program of the page and returns its output. */
async function check(
  t: TestContext,
  bundle: SmallBundle | SaltedBundle,
  vkey: string = exampleKey.vkey,
): Promise<string> {
  const cwd = folderOf(t, JSON.stringify(bundle));
  const words = ['check.py', 'bundle.json', vkey];
  const run = promisify(execFile)('python3', words, { cwd });
  return (
    await run.then(
      ({ stdout }) => stdout,
      ({ stderr }) => stderr,
    )
  ).trim();
}

test('the openssl command proves a time stamp whose certificates have expired, and no other text', {
  skip,
}, async (t) => {
  const authority = await startTimeStampAuthority(t, { hasEnded: true });
  const { proof } = exampleSalted();
  const token = await tokenOver(checkpointTextOf(proof), authority);
  const cwd = folderOf(t, JSON.stringify({ ...exampleSalted(), timeStamp: { proof, token } }));
  copyFileSync(authority.caFile, join(cwd, 'authorities.pem'));
  const run = (commands: string) => promisify(execFile)('sh', ['-euc', commands], { cwd });
  const { stdout, stderr } = await run(byOpenssl);
  assert.match(stdout + stderr, /^Verification: OK$/m);
  // Without the time of the stamp, openssl checks whether the certificates are valid today.
  await assert.rejects(run(byOpenssl.replace(/ -attime .*/, '')), /certificate has expired/);
  writeFileSync(
    join(cwd, 'bundle.json'),
    JSON.stringify({ timeStamp: { proof: proof.replace('\n5\n', '\n6\n'), token } }),
  );
  await assert.rejects(run(byOpenssl), /message imprint mismatch/);
});

test('the steps print the output on the page', { skip }, async (t) => {
  const { stdout } = await promisify(execFile)('sh', ['-euc', bySteps], { cwd: folderOf(t) });
  assert.equal(stdout, printed);
});

test('the program has at most seventy lines, and prints the output on the page', { skip }, async (t) => {
  assert.ok(program.trimEnd().split('\n').length <= 70);
  const { stdout } = await promisify(execFile)('sh', ['-euc', byProgram], { cwd: folderOf(t) });
  assert.match(stdout, /^PROVEN: /);
  assert.ok(document.includes(`\`${stdout.trim()}\``), stdout);
});

test('the program proves every entry of the example', { skip }, async (t) => {
  for (const [index, bundle] of [
    [0, exampleBundle(0)],
    [1, exampleBundle(1)],
    [2, exampleSalted(2, [])],
    [2, exampleSalted(2, ['attachments', 'author', 'price'])],
    [3, exampleSalted(3, [])],
    [3, exampleSalted(3)],
    [4, exampleBundle(4)],
  ] as const)
    assert.match(await check(t, bundle), new RegExp(`^PROVEN: .* is entry ${index} of 5`));
});

/** Asserts that the program names the fault of each bundle. */
async function assertFaults(
  t: TestContext,
  faults: readonly (readonly [bundle: SmallBundle | SaltedBundle, fault: string, vkey?: string])[],
): Promise<void> {
  for (const [bundle, fault, vkey] of faults)
    assert.match(await check(t, bundle, vkey), new RegExp(`^NOT PROVEN: ${fault}`), fault);
}

test('the program names each fault', { skip }, async (t) => {
  const good = exampleBundle(1);
  const { record, leaf, proof } = good;
  const otherKey = noteKey(exampleOrigin, Buffer.alloc(32, 0x11));
  const elsewhere = noteKey('elsewhere.example', Buffer.alloc(32, 0x11));
  const changed = (from: string, to: string) => ({ ...good, proof: proof.replace(from, to) });
  await assertFaults(t, [
    [{ ...good, version: 3 }, 'this is another format'],
    [{ ...good, record: record.replace('Zhang', 'Xu') }, 'the record has another hash'],
    [{ ...good, salt: '00'.repeat(32) }, 'the leaf commits to another record'],
    [{ ...good, leaf: leaf.replace('000002', '000004') }, 'the leaf names another record'],
    [{ ...good, leaf: leaf.replace('699,', '698,') }, 'the leaf has another time than the record'],
    [{ ...good, leaf: leaf.replace(':', ': ') }, 'this is not canonical JSON'],
    [changed('index 1', 'index 2'), 'the leaf is not in the tree'],
    [changed('index 1', 'index 5'), 'the leaf is beyond the end of the tree'],
    [changed('\n5\n', '\n6\n'), 'this key did not sign the checkpoint'],
    [good, 'this key did not sign the checkpoint', otherKey.vkey],
    [good, 'this is the key of another log', elsewhere.vkey],
    [good, 'this is no Ed25519 verifier key', exampleKey.vkey.replace('+1f60', '+1f61')],
  ]);
});

test('the program names each fault of a bundle of version 2', { skip }, async (t) => {
  const [good, whole] = [exampleSalted(), exampleSalted(2, [])];
  const forged = { salt: '00'.repeat(16), value: 'Xu Beihong' };
  const { author: digest = '' } = digestsOf({ author: forged });
  const record = sortedJson({ ...JSON.parse(good.record), author: digest });
  const disclosed = { ...good.disclosed, author: forged };
  await assertFaults(t, [
    [{ ...good, record }, 'the record has another author'],
    [{ ...good, disclosed }, 'the record has another author'],
    [{ ...good, disclosed: { ...good.disclosed, owner: forged } }, 'the record has another owner'],
    [{ ...good, record, disclosed }, 'the leaf commits to another record'],
    [
      { ...good, record: good.record.replace('Gallery One', 'Gallery Two') },
      'the leaf commits to another record',
    ],
    [{ ...whole, hash: 'ab'.repeat(32) }, 'the record has another hash'],
  ]);
});

test('the program proves the bundle of a service', { skip }, async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const { json } = await getEvidence(service, platform, filingNo);
  const vkey = (await (await fetch(`${service.publicUrl}/log/vkey`)).text()).trim();
  assert.match(
    await check(t, json, vkey),
    new RegExp(`^PROVEN: FILING ${filingNo} is entry [0-9]+ of [0-9]+ in the log artseal`),
  );
  const { text } = await getEvidence(service, platform, filingNo, {
    target: `/api/v1/filing/${filingNo}/evidence?disclose=author`,
  });
  assert.match(await check(t, JSON.parse(text), vkey), /^PROVEN: FILING /);
  assert.match(
    await check(t, { ...json, hash: '0'.repeat(64) }, vkey),
    /^NOT PROVEN: the record has another hash/,
  );
});
