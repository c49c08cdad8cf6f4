import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { servingRecordName } from '../../src/serving-record.ts';
import { startService } from '../support/service.ts';

test('master keys of which the commands cannot be told are not used, and the log says so', async (t) => {
  const service = await startService(t);
  const { dataDir, keyRing, logLines } = service;
  const file = join(dataDir, 'keys');
  writeFileSync(file, newMasterKeyText(), { mode: 0o600 });
  const masterKeys = {
    files: [file],
    read: () => ({ keys: parseMasterKeys(readFileSync(file, 'utf8')) }),
  };
  const reload = () => service.reload({ masterKeys, institution: { files: [], read: () => ({}) } });
  const before = keyRing.masterKeys;
  const record = join(dataDir, servingRecordName);
  rmSync(record);
  mkdirSync(record);
  await reload();
  assert.deepEqual(keyRing.masterKeys, before);
  assert.match(logLines.at(-1) ?? '', /"what":"master keys".*what was in force stays in force/);
  rmdirSync(record);
  await reload();
  assert.notDeepEqual(keyRing.masterKeys, before);
  assert.deepEqual(JSON.parse(readFileSync(record, 'utf8')).masterKeys, keyRing.masterKeys);
});
