import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNonces } from '../../src/store/sqlite/admission.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
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
