import { randomBytes } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import { evidenceHash } from '../../src/domain/filing.ts';
import { filingCommitment } from '../../src/domain/filing-record.ts';
import { recordLeafData } from '../../src/domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash, type TreeHead, treeHashBytes } from '../../src/domain/merkle.ts';
import { type LeafRow, leavesIn } from '../../src/store/engine/leaves.ts';

/** Changes rows, leaves and hashes of a database file without the product. */

/** Changes a database without its triggers, and puts them back. */
export function withoutTriggers<T>(client: Sqlite.Database, change: () => T): T {
  const triggers = client
    .prepare<[], { name: string; sql: string }>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  for (const { name } of triggers) client.exec(`DROP TRIGGER ${name}`);
  const changed = change();
  for (const { sql } of triggers) client.exec(sql);
  return changed;
}

/** Changes a database file without its triggers and foreign keys, and puts the triggers back. */
export function forgeIn<T>(file: string, change: (client: Sqlite.Database) => T): T {
  const client = new Sqlite(file, { timeout: 60_000 });
  try {
    client.pragma('foreign_keys = OFF');
    return client.transaction(() => withoutTriggers(client, () => change(client)))();
  } finally {
    client.close();
  }
}

/** A filing as its row has it. */
export interface FilingRow {
  readonly id: number;
  readonly filing_no: string;
  readonly caller_id: number;
  readonly author: string;
  readonly era: string;
  readonly size: string;
  readonly material: string;
  readonly condition: string;
  readonly price: number;
  readonly timestamp: string;
  readonly filed_at_s: number;
  readonly salt: Buffer;
  readonly leaf_index: number;
  readonly record_version: number;
  readonly attachments: string | null;
}

/** The evidence hash and the leaf that the row of a filing has to have. */
export function leafOfFiling(
  client: Sqlite.Database,
  row: FilingRow,
): { readonly hash: string; readonly data: string } {
  const caller = client.prepare('SELECT name FROM caller WHERE id = ?').pluck().get(row.caller_id);
  const { filing_no: filingNo, record_version: recordVersion } = row;
  const filing = { ...row, filingNo, recordVersion, price: BigInt(row.price), caller: String(caller) };
  const hash = evidenceHash(filing);
  const commitment = filingCommitment(filing, row.salt);
  const { filing_no: number, filed_at_s: timeS } = row;
  return { hash, data: recordLeafData({ kind: 'FILING', number, sequence: 1, timeS, commitment }) };
}

/** Gives each filing a record of version 1, as the first release would have filed it, and rewrites its leaf. */
export function toVersion1(client: Sqlite.Database): void {
  for (const row of client.prepare<[], FilingRow>('SELECT * FROM filing').all()) {
    const old = { ...row, record_version: 1, salt: randomBytes(32) };
    client.prepare('UPDATE filing SET record_version = 1, salt = ? WHERE id = ?').run(old.salt, row.id);
    rewriteTree(client, row.leaf_index, leafOfFiling(client, old).data);
  }
}

/** Replaces the data of a leaf and its own 32-byte hash, and no hash above it. */
export function rewriteLeaf(client: Sqlite.Database, index: number, data: string): void {
  const row = client
    .prepare<[number], LeafRow>('SELECT * FROM log_leaf WHERE id >= ? ORDER BY id LIMIT 1')
    .get(index);
  if (row === undefined) throw new Error(`There is no leaf ${index}.`);
  const leaves = (leavesIn(row) ?? []).map((leaf) =>
    leaf.index === index
      ? { data, hashes: Buffer.concat([leafHash(data), leaf.hashes.subarray(treeHashBytes)]) }
      : leaf,
  );
  updateRow(client, row, leaves);
}

/** Replaces the data of a leaf, and all hashes of the tree; the tree. */
export function rewriteTree(client: Sqlite.Database, index: number, data: string): TreeHead {
  let tree = emptyTree;
  for (const row of client.prepare<[], LeafRow>('SELECT * FROM log_leaf ORDER BY id').all()) {
    const leaves = (leavesIn(row) ?? []).map((leaf) => {
      const kept = leaf.index === index ? data : leaf.data;
      const appended = appendLeaf(tree, leafHash(kept));
      tree = appended.tree;
      return { data: kept, hashes: Buffer.concat(appended.completed) };
    });
    updateRow(client, row, leaves);
  }
  return tree;
}

/** Appends a leaf as the product would; its index. */
export function appendForged(client: Sqlite.Database, data: string): number {
  let tree = emptyTree;
  for (const row of client.prepare<[], LeafRow>('SELECT * FROM log_leaf ORDER BY id').all())
    for (const leaf of leavesIn(row) ?? []) tree = appendLeaf(tree, leafHash(leaf.data)).tree;
  const { completed } = appendLeaf(tree, leafHash(data));
  client
    .prepare('INSERT INTO log_leaf (id, data, hashes, first) VALUES (?, ?, ?, ?)')
    .run(tree.size, data, Buffer.concat(completed), tree.size);
  return tree.size;
}

function updateRow(
  client: Sqlite.Database,
  { id }: LeafRow,
  leaves: readonly { readonly data: string; readonly hashes: Buffer }[],
): void {
  client
    .prepare('UPDATE log_leaf SET data = ?, hashes = ? WHERE id = ?')
    .run(leaves.map(({ data }) => data).join('\n'), Buffer.concat(leaves.map(({ hashes }) => hashes)), id);
}
