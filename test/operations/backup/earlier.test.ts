import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { evidenceHash } from '../../../src/domain/filing.ts';
import { verifyBackup } from '../../../src/operations/backup/verify.ts';
import { makeEarlierDatabase, newestSchema, timestamp } from '../../store/earlier-database.ts';
import { backedUp, openRegistryIn, restored, unwatched } from './folder.ts';

/** What was filed in databases of early releases. */
const filed = { author: 'a', era: 'b', size: 'c', material: 'd', condition: 'e', price: 1n };

/** Gives all filings the hash that they were answered with; their numbers. */
function giveHashes(raw: Sqlite.Database): readonly string[] {
  const guards = raw
    .prepare<[], { name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name = 'filing_never_changes'",
    )
    .all();
  for (const { name } of guards) raw.exec(`DROP TRIGGER ${name}`);
  const numbers = raw.prepare<[], string>('SELECT filing_no FROM filing ORDER BY id').pluck().all();
  const give = raw.prepare('UPDATE filing SET hash = ? WHERE filing_no = ?');
  for (const filingNo of numbers) give.run(evidenceHash({ ...filed, filingNo, timestamp }), filingNo);
  for (const { sql } of guards) raw.exec(sql);
  return numbers;
}

for (let schema = 1; schema < newestSchema; schema += 1) {
  test(`a database of schema ${schema} is backed up as it is, and restored to the schema of this version`, async (t) => {
    const { dataDir, open } = makeEarlierDatabase(t, schema);
    const raw = open();
    const numbers = giveHashes(raw);
    raw.close();
    const backup = await backedUp(t, dataDir);
    const { manifest, faults } = await verifyBackup(backup, unwatched);
    assert.deepEqual(faults, []);
    assert.equal(manifest.database.schema, schema);
    const { into } = await restored(t, backup, { numbersAfter: 'AS-2026-000008' });
    const kept = new Sqlite(join(into, 'artseal.db'), { readonly: true });
    t.after(() => kept.close());
    assert.equal(kept.pragma('user_version', { simple: true }), newestSchema);
    assert.deepEqual(kept.prepare('SELECT filing_no FROM filing ORDER BY id').pluck().all(), numbers);
    assert.equal(await (await openRegistryIn(t, into)).file(), 'AS-2026-000009');
  });
}
