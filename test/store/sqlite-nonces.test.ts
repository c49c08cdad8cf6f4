import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNonces, nonceFingerprint, windowOf } from '../../src/store/sqlite/admission.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createFingerprintTable } from '../../src/store/sqlite/fingerprints.ts';
import { nonceRetentionS } from '../../src/store/store.ts';
import { countNonces } from '../support/nonces.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { nowS, sandbox } from './promises/fixtures.ts';

test('expired nonces are deleted on disk and in memory as others are spent, even if the clock was once ahead', (t) => {
  const { database, close } = openDatabase({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(close);
  const { $client: client } = database;
  const nonces = createNonces(database);
  const spend = (count: number, atS: number, sweepAtS = atS) => {
    for (let nth = 0; nth < count; nth += 1) {
      assert.equal(nonces.spend({ keyId: 1, nonce: `${nth}` }, atS, sweepAtS), true);
      nonces.write();
      nonces.committed();
    }
  };
  spend(1, nowS + 86_400, nowS);
  spend(20, nowS);
  spend(10, nowS + 3 * nonceRetentionS);
  assert.deepEqual([countNonces(client), nonces.count()], [11, 11]);
});

test('a nonce leaves the memory soon after it has expired', (t) => {
  const { database, close } = openDatabase({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(close);
  const nonces = createNonces(database);
  const everyS = 33;
  for (let atS = nowS; atS < nowS + 4 * nonceRetentionS; atS += everyS) {
    assert.equal(nonces.spend({ keyId: 1, nonce: `${atS}` }, atS, atS), true);
    nonces.write();
    nonces.committed();
    assert.ok(nonces.count() <= (4 * nonceRetentionS) / 3 / everyS + 1, `${nonces.count()} at ${atS}`);
  }
});

test('a transaction that is rolled back leaves each nonce as it was', (t) => {
  const { database, close } = openDatabase({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(close);
  const nonces = createNonces(database);
  const spend = (nonce: string, atS = nowS) => nonces.spend({ keyId: 1, nonce }, atS, nowS);
  const commit = () => {
    nonces.write();
    nonces.committed();
  };
  const startS = windowOf(nowS) * nonceRetentionS;
  assert.deepEqual([spend('kept', startS), spend('kept', startS)], [true, false]);
  commit();
  assert.deepEqual([spend('new'), spend('kept', startS)], [true, false]);
  nonces.rolledBack();
  assert.deepEqual([spend('new'), spend('new'), spend('kept', startS)], [true, false, false]);
  commit();
  assert.equal(spend('new'), false);
});

test('a table finds the number of each of many fingerprints, and no other', () => {
  const table = createFingerprintTable();
  const count = 20_000;
  for (let each = 1; each <= count; each += 1) {
    table.set(nonceFingerprint(`1 ${each}`), each);
    // The table also grows between a number and its replacement.
    table.set(nonceFingerprint(`1 ${Math.ceil(each / 2)}`), count + Math.ceil(each / 2));
  }
  assert.equal(table.size(), count);
  for (let each = 1; each <= count; each += 1) {
    const number = each <= count / 2 ? count + each : each;
    assert.equal(table.get(nonceFingerprint(`1 ${each}`)), number);
  }
  for (let each = 1; each <= count; each += 1) {
    assert.equal(table.get(nonceFingerprint(`2 ${each}`)), undefined);
  }
});

test('fingerprints that share a half have their own numbers, which can be replaced', () => {
  const table = createFingerprintTable();
  const alike = [
    { high: 1, low: 1 },
    { high: 2, low: 1 },
    { high: 1, low: 2 },
    { high: 0, low: 0 },
    { high: 0xffffffff, low: 0xffffffff },
  ];
  for (const [place, fingerprint] of alike.entries()) table.set(fingerprint, place + 1);
  table.set({ high: 2, low: 1 }, 0xffffffff);
  assert.deepEqual(
    alike.map((fingerprint) => table.get(fingerprint)),
    [1, 0xffffffff, 3, 4, 5],
  );
  assert.equal(table.get({ high: 3, low: 1 }), undefined);
});
