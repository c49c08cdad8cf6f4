import Sqlite from 'better-sqlite3';
import { type LeafRow, leavesIn } from './leaves.ts';
import { logBegins, migrationNames, migrationSql, statementEnd } from './migrations.ts';

/** Rows that are read at a time: a connection that reads cannot write meanwhile. */
const rowsAtOnce = 1_000;

/**
 * What takes the migrations back that came after the evidence log, by their names. What was published of a log must not be
 * lost, so a database that has one is brought back as it is, not as it was.
 */
const waysBack: Readonly<Record<string, (client: Sqlite.Database) => void>> = {
  '0015_leaf_rows': giveLeavesRows,
};

/** Brings a database, which has an evidence log, back to a schema that has one as well; nothing of it is lost. */
export function takeBack(file: string, schema: number): void {
  const client = new Sqlite(file, { fileMustExist: true });
  try {
    client.transaction(() => {
      for (const name of migrationNames().slice(schema).toReversed()) {
        const back = waysBack[name];
        if (back === undefined) throw new Error(`Nothing takes ${name} back.`);
        back(client);
      }
      client.pragma(`user_version = ${schema}`);
    })();
  } finally {
    client.close();
  }
}

/** Each leaf has a row of its own, in the table that schema 15 had. */
function giveLeavesRows(client: Sqlite.Database): void {
  client.exec(
    'DROP TRIGGER log_leaf_is_kept; ALTER TABLE log_leaf RENAME TO shared; DROP TRIGGER log_leaf_never_changes; DROP TRIGGER log_leaf_follows',
  );
  const statements = migrationSql(logBegins).split(statementEnd);
  for (const statement of statements) if (/`log_leaf`/.test(statement)) client.exec(statement);
  const select = client.prepare<[number, number], LeafRow>(
    'SELECT * FROM shared WHERE id > ? ORDER BY id LIMIT ?',
  );
  const insert = client.prepare('INSERT INTO log_leaf (id, data, hashes) VALUES (?, ?, ?)');
  for (let from = -1, rows: readonly LeafRow[] = []; ; from = rows.at(-1)?.id ?? from) {
    rows = select.all(from, rowsAtOnce);
    if (rows.length === 0) break;
    for (const row of rows) {
      const leaves = leavesIn(row);
      if (leaves === undefined) throw new Error(`The leaves of the row ${row.id} are not what was written.`);
      for (const { index, data, hashes } of leaves) insert.run(index, data, hashes);
    }
  }
  client.exec('DROP TABLE shared');
}
