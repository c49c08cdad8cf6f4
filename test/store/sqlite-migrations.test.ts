import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../../src/store/sqlite/upgrade.ts';
import { documentText } from '../support/documents.ts';

/** What takes from a database something that the version before uses. A rebuilt table is dropped and renamed. */
const contractions = [/\bDROP\s+TABLE\b/i, /\bALTER\s+TABLE\s+\S+\s+(DROP|RENAME)\b/i];
const uniqueIndexes = /\bCREATE\s+UNIQUE\s+INDEX\s+\S+\s+ON\s+`?(\w+)/gi;
const raise = /\bUPDATE\s+`?oldest_version`?\s+SET\s+`?schema`?\s*=\s*(\d+),\s*`?version`?\s*=\s*'([^']+)'/i;

/** The fault of a migration that leads to a schema; undefined if the version before can use that schema. */
function faultOf(schema: number, sql: string): string | undefined {
  const isNew = (table: string) => new RegExp(`\\bCREATE\\s+TABLE\\s+\`?${table}\\b`, 'i').test(sql);
  // Rows that the version before inserts may break it.
  const added = Array.from(sql.matchAll(uniqueIndexes), ([, table = '']) => table);
  const contracts = contractions.some((pattern) => pattern.test(sql)) || !added.every(isNew);
  const [, oldest, version = ''] = raise.exec(sql) ?? [];
  if (oldest === undefined) return contracts ? 'it contracts, and does not raise oldest_version' : undefined;
  if (Number(oldest) >= schema)
    return 'the version before cannot use it: expand first, contract a version later';
  const isReleased = documentText('CHANGELOG.md').includes(`## [${version}] - `);
  return isReleased ? undefined : `CHANGELOG.md has no version ${version}`;
}

/** It was before the first release. Earlier versions cannot check the records of the version that has it. */
const recordsOfVersion2 = '0003_record_version';

test('each migration leaves the database usable by the version before', () => {
  const faults = migrations.map(({ name, sql }, index) =>
    name === recordsOfVersion2 ? undefined : faultOf(index + 1, sql),
  );
  assert.deepEqual(
    faults,
    migrations.map(() => undefined),
  );
});

test('a migration that only expands is accepted; one that contracts has to raise the oldest version', () => {
  const raised = (schema: number, version: string) =>
    `ALTER TABLE \`party\` DROP COLUMN \`role\`; UPDATE \`oldest_version\` SET \`schema\` = ${schema}, \`version\` = '${version}';`;
  const expanding = [
    'ALTER TABLE `filing` ADD `origin` text;',
    'CREATE TABLE `loan` (`id` integer); CREATE UNIQUE INDEX `loan_id` ON `loan` (`id`);',
    'CREATE INDEX `filing_by_era` ON `filing` (`era`);',
    'DROP TRIGGER `filing_never_changes`; CREATE TRIGGER `filing_never_changes` BEFORE UPDATE ON `filing` BEGIN SELECT 1; END;',
    raised(2, '1.0.0-rc.1'),
  ];
  for (const sql of expanding) assert.equal(faultOf(3, sql), undefined, sql);
  const contracting = [
    'ALTER TABLE `party` DROP COLUMN `role`;',
    'ALTER TABLE `party` RENAME COLUMN `role` TO `part`;',
    'CREATE TABLE `__new_party` (`id` integer); DROP TABLE `party`; ALTER TABLE `__new_party` RENAME TO `party`;',
    'CREATE UNIQUE INDEX `filing_hash` ON `filing` (`hash`);',
    raised(3, '1.0.0-rc.1'),
    raised(2, '9.9.9'),
  ];
  for (const sql of contracting) assert.notEqual(faultOf(3, sql), undefined, sql);
});
