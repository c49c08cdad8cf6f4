import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createIssuance } from '../../src/keys/issuance.ts';
import { createKeyRing, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { systemClock } from '../../src/operations/registry.ts';
import { readServingRecord, servingRecordName } from '../../src/operations/serving-record.ts';
import { artsealWith } from '../support/artseal.ts';
import { tester } from '../support/audit-log.ts';
import { fileArtwork } from '../support/calls.ts';
import { keysInFile, newKey } from '../support/master-keys.ts';
import { startService, type TestService } from '../support/service.ts';

/** Reloads, and returns the line that is logged. */
async function reload(service: TestService) {
  await service.reload();
  return JSON.parse(service.logLines.at(-1) ?? '');
}

test('master keys are not replaced if the file is faulty, exposed, irregular or incomplete', async (t) => {
  const { file, env, write } = keysInFile(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  const service = await startService(t, { env });
  const platform = await service.platform();
  const rejected = async (rule: RegExp) => {
    const { level, why } = await reload(service);
    assert.equal(level, 50);
    assert.match(why, rule);
    assert.doesNotMatch(why, /[0-9a-f]{32}/);
  };
  write(k2, 'k1:0123');
  await rejected(/ARTSEAL_MASTER_KEY_FILE cannot be used: entry 2/);
  write(k2);
  await rejected(/does not decrypt the secret of key_\w+ \(platform-\d+\)/);
  write(k2, k1);
  chmodSync(file, 0o666);
  await rejected(/chmod go-w/);
  renameSync(file, `${file}.kept`);
  mkdirSync(file);
  await rejected(/no regular file/);
  rmdirSync(file);
  renameSync(`${file}.kept`, file);
  chmodSync(file, 0o600);
  assert.equal((await fileArtwork(service, platform)).status, 200);
});

test('reloads that wait for the same run share it', async (t) => {
  const { env, write } = keysInFile(t);
  write(newKey('k1'));
  const service = await startService(t, { env });
  const reloads = () => service.logLines.filter((line) => line.includes('"master keys reloaded"')).length;
  await Promise.all(Array.from({ length: 50 }, () => service.reload()));
  assert.equal(reloads(), 1);
});

test('a key that is encrypted with an unknown master key gets UNAVAILABLE until a reload', async (t) => {
  const { env, write } = keysInFile(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  const service = await startService(t, { env });
  write(k2, k1);
  // As an instance of the service does that has read the file already.
  const { execute } = service;
  const keyRing = createKeyRing(parseMasterKeys(`${k2}\n${k1}`));
  const issuance = createIssuance({ execute, keyRing, environment: 'sandbox', clock: systemClock });
  const terms = { name: 'late', tier: 'TRIAL', monthlyQuota: undefined, unlimited: false } as const;
  const { key, apiSecret } = await issuance.issueKey(terms, tester);
  const late = { apiKey: key.apiKey, apiSecret };
  const { status, json } = await fileArtwork(service, late);
  assert.deepEqual([status, json.code], [503, 'UNAVAILABLE']);
  const logged = service.logLines.find((line) => line.includes('"status":503'));
  assert.match(logged ?? '', new RegExp(`${key.keyId} is encrypted with master key 'k2'.*not in the ring`));
  assert.deepEqual((await reload(service)).names, ['k2', 'k1']);
  assert.equal((await fileArtwork(service, late)).status, 200);
});

test('after the loss of a master key every platform is issued another key', async (t) => {
  const { env, write } = keysInFile(t);
  write(newKey('k1'));
  const lost = await startService(t, { env });
  const [old, { dataDir }] = [await lost.platform(), lost];
  await lost.close();
  write(newKey('k2'));
  const artseal = artsealWith({ ...env, ARTSEAL_DATA_DIR: dataDir });
  for (const words of ['key list', `key rotate ${old.keyId}`])
    assert.match(await artseal.errors(1, words), /with the key k1 of this database/);
  const [{ caller, replaced, keyId, ...platform }] = await artseal.list('secrets rotate');
  assert.deepEqual([caller, replaced, keyId === old.keyId], [old.caller, old.keyId, false]);
  assert.match(
    await artseal.text('secrets rotate'),
    /nothing to replace\. A running server still has a lost/,
  );
  const service = await startService(t, { env, dataDir });
  assert.equal((await fileArtwork(service, platform)).status, 200);
  assert.equal((await fileArtwork(service, old)).status, 401);
});

test('master keys are used also if the serving record cannot be written', async (t) => {
  const { env, write } = keysInFile(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  const service = await startService(t, { env });
  const record = join(service.dataDir, servingRecordName);
  rmSync(record);
  mkdirSync(record);
  write(k2, k1);
  assert.deepEqual((await reload(service)).names, ['k2', 'k1']);
  assert.match(service.logLines.at(-2) ?? '', /"level":40,.*serving\.json cannot be written/);
  rmdirSync(record);
  await reload(service);
  const { masterKeys } = service.keyRing;
  assert.deepEqual([masterKeys[0]?.name, readServingRecord(service.dataDir)?.masterKeys], ['k2', masterKeys]);
});
