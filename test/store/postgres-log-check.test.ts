import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { inspectDatabase } from '../../src/store/postgres/inspection.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { createDatabase, runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { addPlatform, fileOne, sandbox } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();

/** More than two pages of leaves. */
const filings = 250;

/** Fills a database: filings that are filed together, and one alone. */
async function fill(url: string): Promise<void> {
  const store = await openPostgresStore({ place: { url }, ...sandbox, opening: 'NEW' });
  await addPlatform(store, 'gallery');
  const file = () => fileOne(store, { callerId: 1, caller: 'gallery' });
  await Promise.all(Array.from({ length: filings - 1 }, file));
  await file();
  await store.close();
}

/** The faults after statements of a superuser who disabled the triggers. */
async function faultsAfter(t: TestContext, ...statements: readonly string[]): Promise<readonly string[]> {
  const url = await createDatabase(t, { template: fill });
  const disabled = ['filing', 'log_leaf'].map((table) => `ALTER TABLE ${table} DISABLE TRIGGER ALL`);
  await runSql(url, ...disabled, ...statements);
  const { content } = await inspectDatabase(
    { url },
    { year: 2026, nowMs: Date.now },
    async (_state, _read, faults) => faults,
  );
  return content?.foundInLog ?? ['no content'];
}

const number = (place: number) => `AS-2026-${String(place).padStart(6, '0')}`;
const last = number(filings);

test('records and leaves that agree have no fault', { skip }, async (t) => {
  assert.deepEqual(await faultsAfter(t), []);
});

/** What a superuser changes, and the first fault. */
const changes: Readonly<Record<string, readonly [sql: string, fault: RegExp]>> = {
  'a changed filing': [
    `UPDATE filing SET author = 'Forger' WHERE filing_no = '${last}'`,
    new RegExp(`^${last} is not what its evidence hash was made of$`),
  ],
  'a deleted filing': [
    `DELETE FROM filing WHERE filing_no = '${number(7)}'`,
    new RegExp(`^leaf \\d+ of the evidence log is of ${number(7)}, which is not there`),
  ],
  'a filing that was put in': [
    `INSERT INTO filing SELECT (jsonb_populate_record(filing, '{"id": 9999, "filing_no": "AS-2026-009999"}')).*
      FROM filing WHERE filing_no = '${last}'`,
    /^AS-2026-009999 has no leaf in the evidence log$/,
  ],
  'a deleted leaf': [
    'DELETE FROM log_leaf WHERE id = (SELECT max(id) FROM log_leaf)',
    new RegExp(`^${last} has no leaf in the evidence log$`),
  ],
  'a row of leaves that is missing between others': [
    'DELETE FROM log_leaf WHERE first = (SELECT first FROM log_leaf ORDER BY first OFFSET 3 LIMIT 1)',
    /^leaf \d+ of the evidence log is not there$/,
  ],
  'a changed hash of a leaf': [
    'UPDATE log_leaf SET hashes = set_byte(hashes, 0, get_byte(hashes, 0) # 1) WHERE first = 0',
    /^leaf 0 of the evidence log \(.*\) is not what its hashes were made of$/,
  ],
  'a leaf whose number PostgreSQL cannot store': [
    String.raw`UPDATE log_leaf SET data = replace(data, '${last}', '${last}\u0000') WHERE first = (SELECT max(first) FROM log_leaf)`,
    /^leaf \d+ of the evidence log \(unreadable\) is not what its hashes were made of$/,
  ],
};

for (const [what, [sql, fault]] of Object.entries(changes)) {
  test(`a change by a superuser is named: ${what}`, { skip }, async (t) => {
    const [first = ''] = await faultsAfter(t, sql);
    assert.match(first, fault);
  });
}
