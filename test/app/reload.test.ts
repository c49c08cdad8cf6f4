import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pino from 'pino';
import { readConfig } from '../../src/config/config.ts';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import {
  createServingRecordPublisher,
  readServingRecord,
  servingRecordName,
} from '../../src/operations/serving-record.ts';
import { runHere } from '../support/artseal.ts';
import { tester } from '../support/audit-log.ts';
import { fileArtwork } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { startService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const newKey = (name: string): string => `${name}:${randomBytes(32).toString('hex')}`;

/** The settings of a sandbox whose master keys are in a file, and what writes them. */
function keysInFile(t: TestContext) {
  const folder = temporaryFolder(t);
  const file = join(folder, 'keys');
  const env = { ARTSEAL_DATA_DIR: join(folder, 'data'), ARTSEAL_MASTER_KEY_FILE: file };
  mkdirSync(env.ARTSEAL_DATA_DIR);
  const write = (...keys: readonly string[]) => writeFileSync(file, `${keys.join('\n')}\n`, { mode: 0o600 });
  return { file, env, write };
}

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
  await rejected(/does not open the secret of key_\w+ \(platform-\d+\)/);
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

test('a key that is sealed under an unknown master key gets UNAVAILABLE until a reload', async (t) => {
  const { env, write } = keysInFile(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  const service = await startService(t, { env });
  write(k2, k1);
  // Commands on this machine check first; one on another machine does not.
  const registry = await openRegistry(readConfig(env), 'EXISTING');
  const terms = { name: 'late', tier: 'TRIAL', monthlyQuota: undefined, unlimited: false } as const;
  const { key, apiSecret } = await registry.issuance.issueKey(terms, tester);
  await registry.store.close();
  await service.store.refresh();
  const late = { apiKey: key.apiKey, apiSecret };
  const { status, json } = await fileArtwork(service, late);
  assert.deepEqual([status, json.code], [503, 'UNAVAILABLE']);
  const logged = service.logLines.find((line) => line.includes('"status":503'));
  assert.match(logged ?? '', new RegExp(`${key.keyId} is sealed under master key 'k2'.*not in the ring`));
  assert.deepEqual((await reload(service)).names, ['k2', 'k1']);
  assert.equal((await fileArtwork(service, late)).status, 200);
});

test('after the loss of a master key every platform is issued another key', async (t) => {
  const { env, write } = keysInFile(t);
  write(newKey('k1'));
  const lost = await startService(t, { env });
  const old = await lost.platform();
  await lost.close();
  write(newKey('k2'));
  const artseal = async (...words: readonly string[]) => {
    const { printed, errors } = await runHere(words, env);
    return [...printed, ...errors].join('\n');
  };
  assert.match(await artseal('key', 'list'), /with the key k1 of this database/);
  assert.match(await artseal('key', 'rotate', old.keyId), /with the key k1 of this database/);
  const { caller, replaced, keyId, ...platform } = JSON.parse(
    (await artseal('secrets', 'rotate', '--json')).split('\n')[0] ?? '',
  );
  assert.deepEqual([caller, replaced], [old.caller, old.keyId]);
  assert.notEqual(keyId, old.keyId);
  assert.match(await artseal('secrets', 'rotate'), /nothing to replace/);
  const service = await startService(t, { env });
  assert.equal((await fileArtwork(service, platform)).status, 200);
  assert.equal((await fileArtwork(service, old)).status, 401);
  assert.match(
    await artseal('secrets', 'rotate'),
    /nothing to replace. A running server still has a lost master key/,
  );
});

test('master keys from the variable need a restart, and the log says so', async (t) => {
  const env = { ARTSEAL_MASTER_KEY: newKey('k1') };
  const { level, msg } = await reload(await startService(t, { env }));
  assert.equal(level, 30);
  assert.match(msg, /not reloaded: they come from a variable/);
});

test('master keys that cannot be published to commands are not used', async (t) => {
  const { env, write } = keysInFile(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  const service = await startService(t, { env });
  const before = service.keyRing.masterKeys;
  const record = join(env.ARTSEAL_DATA_DIR, servingRecordName);
  rmSync(record);
  mkdirSync(record);
  write(k2, k1);
  assert.equal((await reload(service)).level, 50);
  assert.deepEqual(service.keyRing.masterKeys, before);
  rmdirSync(record);
  await reload(service);
  assert.notDeepEqual(service.keyRing.masterKeys, before);
  assert.deepEqual(JSON.parse(readFileSync(record, 'utf8')).masterKeys, service.keyRing.masterKeys);
});

test('a serving record that cannot be written is written ten seconds later', async (t) => {
  const dataDir = temporaryFolder(t);
  const clock = createManualClock();
  const record = join(dataDir, servingRecordName);
  mkdirSync(record);
  const keyRing = createKeyRing(parseMasterKeys(newMasterKeyText()));
  const log = pino({ level: 'silent' });
  const publisher = createServingRecordPublisher({ dataDir, keyRing, addresses: [], clock, log });
  publisher.publish();
  clock.advance(10_000);
  assert.ok(statSync(record).isDirectory());
  rmdirSync(record);
  clock.advance(10_000);
  assert.deepEqual(readServingRecord(dataDir)?.masterKeys, keyRing.masterKeys);
});
