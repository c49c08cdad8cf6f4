import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pino from 'pino';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../../src/keys/key-ring.ts';
import {
  createServingRecordPublisher,
  readServingRecord,
  servingRecordName,
} from '../../../src/operations/serving-record.ts';
import { createManualClock } from '../../support/clock.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('master keys of which the commands cannot be told are not used, and the log says so', async (t) => {
  const service = await startService(t);
  const { dataDir, keyRing, logLines } = service;
  const file = join(dataDir, 'keys');
  // The one in force stays known: the key of the evidence log is sealed under it.
  const own = readFileSync(join(dataDir, 'master-key'), 'utf8');
  writeFileSync(file, `${newMasterKeyText().replace('main', 'next')}${own}`, { mode: 0o600 });
  const masterKeys = {
    files: [file],
    read: () => ({ keys: parseMasterKeys(readFileSync(file, 'utf8')) }),
  };
  const reload = () => service.reload({ masterKeys });
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

test('a record that cannot be written is written as soon as it can be', async (t) => {
  const dataDir = temporaryFolder(t);
  const clock = createManualClock();
  const record = join(dataDir, servingRecordName);
  mkdirSync(record);
  const keyRing = createKeyRing(parseMasterKeys(newMasterKeyText()));
  const publisher = createServingRecordPublisher({
    dataDir,
    keyRing,
    addresses: [],
    clock,
    log: pino({ level: 'silent' }),
  });
  publisher.publish();
  clock.advance(10_000);
  assert.ok(statSync(record).isDirectory());
  rmdirSync(record);
  clock.advance(10_000);
  assert.deepEqual(readServingRecord(dataDir)?.masterKeys, keyRing.masterKeys);
});
