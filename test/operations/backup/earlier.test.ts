import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { verifyBackup } from '../../../src/operations/backup/verify.ts';
import { furtherSchema, makeEarlierDatabase, presentSchema } from '../../store/further-migration.ts';
import { backedUp, openRegistryIn, restored, unwatched } from './folder.ts';

test('a backup keeps an earlier schema, and a restore upgrades it', async (t) => {
  const { dataDir, filings } = await makeEarlierDatabase(t);
  const backup = await backedUp(t, dataDir);
  const { manifest, faults } = await verifyBackup(backup, unwatched);
  assert.deepEqual([manifest.database.schema, faults], [presentSchema, []]);
  const { into } = await restored(t, backup, { numbersAfter: 'AS-2026-000008' });
  const kept = new Sqlite(join(into, 'artseal.db'), { readonly: true });
  t.after(() => kept.close());
  assert.equal(kept.pragma('user_version', { simple: true }), furtherSchema);
  assert.deepEqual(kept.prepare('SELECT filing_no FROM filing ORDER BY id').pluck().all(), filings);
  assert.equal(await (await openRegistryIn(t, into)).file(), 'AS-2026-000009');
});
