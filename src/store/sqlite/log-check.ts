import Sqlite from 'better-sqlite3';
import { type Evidence, evidenceHash } from '../../domain/filing.ts';
import {
  actLeafData,
  commitmentTo,
  type LogActDetail,
  type LogActKind,
  type RecordLeaf,
  recordLeafData,
} from '../../domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash, rootOf } from '../../domain/merkle.ts';
import { type LaterRecord, recordHash } from '../../domain/provenance.ts';
import { firstOf, type IndexedLeaf, type LeafRow, leavesIn } from './leaves.ts';

/** Faults after which no more are looked for. */
const faultsMax = 100;

interface FilingRow extends Omit<Evidence, 'price'> {
  readonly price: number;
  readonly hash: string;
  readonly salt: Buffer | null;
  readonly leafIndex: number | null;
  readonly erasedAtS: number | null;
}

interface TransferRow extends LaterRecord {
  readonly salt: Buffer | null;
  readonly leafIndex: number | null;
}

interface ActRow {
  readonly kind: LogActKind;
  readonly sequence: number;
  readonly detail: string;
  readonly timeS: number;
  readonly leafIndex: number;
}

/** A record or act that names a leaf. */
interface RecordRow {
  readonly number: string;
  readonly sequence: number;
  readonly leafIndex: number | null;
}

/** What a leaf says of itself. */
type Told = Omit<RecordLeaf, 'kind'>;

/**
 * Computes the evidence log of a database that nobody changes again from its leaves, one after the other, and holds it
 * against the records and acts: what is wrong, a line each and about `faultsMax` of them at most. The hashes of all subtrees are
 * those of the leaves, published checkpoints have their roots; each leaf is that of one record or act, and each of those has a
 * leaf; filings are what their evidence hashes were made of.
 */
export function faultsInLog(file: string): readonly string[] {
  const client = new Sqlite(file, { readonly: true, fileMustExist: true });
  try {
    return check(client);
  } finally {
    client.close();
  }
}

function check(client: Sqlite.Database): readonly string[] {
  const filing = client.prepare<[string], FilingRow>(selectFiling);
  const transfer = client.prepare<[string, number], TransferRow>(selectTransfer);
  const act = client.prepare<[number], ActRow>(selectAct);
  const published = publishedIn(client);
  const faults: string[] = [];
  let tree = emptyTree;

  for (const row of client.prepare<[], LeafRow>(selectLeaves).iterate()) {
    const first = firstOf(row);
    if (first !== tree.size) return [...faults, `leaf ${tree.size} of the evidence log is not there`];
    const leaves = leavesIn(row);
    // Those behind them are hashed together with them.
    if (leaves === undefined)
      return [...faults, `the leaves ${first} to ${row.id} of the evidence log are not what was written`];
    for (const leaf of leaves) {
      faults.push(...faultsOfLeaf(leaf));
      if (faults.length >= faultsMax) return faults;
    }
  }
  for (const size of published.keys())
    faults.push(`a checkpoint of ${size} leaves was published, and the evidence log has ${tree.size}`);
  return faults.length > 0 ? faults : faultsOfSpare(client, tree.size);

  /** Appends the next leaf to the tree: what is wrong with it, and with the checkpoint of the tree that it ends. */
  function faultsOfLeaf(leaf: IndexedLeaf): readonly string[] {
    const appended = appendLeaf(tree, leafHash(leaf.data));
    tree = appended.tree;
    const fault = Buffer.concat(appended.completed).equals(leaf.hashes)
      ? faultOfContent(leaf)
      : `leaf ${leaf.index} of the evidence log is not what its hashes were made of`;
    const root = published.get(tree.size);
    published.delete(tree.size);
    const isAsPublished = root === undefined || root === Buffer.from(rootOf(tree.roots)).toString('base64');
    const faultOfRoot = `the published checkpoint of ${tree.size} leaves is not of this evidence log`;
    return [...(fault === undefined ? [] : [fault]), ...(isAsPublished ? [] : [faultOfRoot])];
  }

  /** What is wrong with the record or act that a leaf is of. */
  function faultOfContent({ index, data }: IndexedLeaf): string | undefined {
    const told = toldBy(data);
    if (told === undefined) return `leaf ${index} of the evidence log is none that artseal makes`;
    const { number, sequence } = told;
    if (number === 'LOG') return faultOfAct(index, data, act.get(sequence));
    const name = nameOf(told);
    const row = sequence === 1 ? filing.get(number) : transfer.get(number, sequence);
    if (row === undefined || row.leafIndex !== index)
      return `leaf ${index} of the evidence log is of ${name}, which is not there or names another leaf`;
    const isErased = row.salt === null;
    const hash = 'hash' in row ? hashOfFiling(row) : recordHash(row);
    if (hash === undefined) return `${name} is not what its evidence hash was made of`;
    const commitment = isErased ? told.commitment : commitmentTo(hash, row.salt);
    const kind = 'hash' in row ? 'FILING' : row.event;
    return recordLeafData({ kind, number, sequence, timeS: told.timeS, commitment }) === data
      ? undefined
      : `${name} is not what leaf ${index} of the evidence log commits to`;
  }
}

/** What is wrong with records and acts whose leaf is that of another one, or not there: each leaf is that of one that names it. */
function faultsOfSpare(client: Sqlite.Database, size: number): readonly string[] {
  const leaf = client.prepare<[number], LeafRow>(selectLeaf);
  /** The leaves whose own record or act was found. */
  const owned = new Set<number | null>();
  const isOwn = ({ number, sequence, leafIndex }: RecordRow) => {
    const row = leaf.get(leafIndex ?? size);
    const told = toldBy((row && leavesIn(row))?.find(({ index }) => index === leafIndex)?.data ?? '');
    return told?.number === number && told.sequence === sequence && !owned.has(leafIndex);
  };
  const faults: string[] = [];
  for (const record of client.prepare<[number], RecordRow>(selectShared).iterate(size)) {
    if (isOwn(record)) owned.add(record.leafIndex);
    else faults.push(`${nameOf(record)} has no leaf in the evidence log`);
    if (faults.length >= faultsMax) break;
  }
  return faults;
}

function nameOf({ number, sequence }: Pick<Told, 'number' | 'sequence'>): string {
  if (number === 'LOG') return `act ${sequence}`;
  return sequence === 1 ? number : `record ${sequence} of ${number}`;
}

/** The hash of what a filing says now; undefined if it is another one than it was given. One that is erased has none. */
function hashOfFiling({ hash, salt, leafIndex, erasedAtS, price, ...row }: FilingRow): string | undefined {
  const isErased = erasedAtS !== null;
  if (isErased !== (salt === null)) return undefined;
  if (isErased) return hash === '' ? hash : undefined;
  const computed = evidenceHash({ ...row, price: BigInt(price) });
  return computed === hash ? hash : undefined;
}

function faultOfAct(index: number, data: string, row: ActRow | undefined): string | undefined {
  const isItsLeaf = row !== undefined && row.leafIndex === index && dataOf(row) === data;
  return isItsLeaf ? undefined : `leaf ${index} of the evidence log is of no act that the database has`;
}

/** The data of the leaf of an act; undefined if its detail is no JSON. */
function dataOf({ kind, sequence, timeS, detail: text }: ActRow): string | undefined {
  const detail = parsed(text);
  return detail && actLeafData({ kind, sequence, timeS, detail: detail as LogActDetail });
}

/** What the data of a leaf say; undefined if they are not JSON with these members. */
function toldBy(data: string): Told | undefined {
  const { number, sequence, time, commitment = '' } = parsed(data) ?? {};
  const isTold = typeof number === 'string' && typeof sequence === 'number' && typeof time === 'number';
  return isTold ? { number, sequence, timeS: time, commitment: String(commitment) } : undefined;
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

/** What checkpoints under the name in force say, by their sizes: roots, base64. */
function publishedIn(client: Sqlite.Database): Map<number, string> {
  const rows = client.prepare<[], { size: number; note: string }>(selectCheckpoints).all();
  return new Map(rows.map(({ size, note }) => [size, note.split('\n')[2] ?? '']));
}

const selectLeaves = 'SELECT * FROM log_leaf ORDER BY id';

const selectCheckpoints = `SELECT size, note FROM log_checkpoint JOIN log_origin
  ON log_origin.id = (SELECT max(id) FROM log_origin) AND substr(note, 1, length(origin) + 1) = origin || char(10)
  ORDER BY size`;

const selectFiling = `SELECT author, era, size, material, condition, price, hash, timestamp, filing_no AS filingNo, salt,
  leaf_index AS leafIndex, erased_at_s AS erasedAtS FROM filing WHERE filing_no = ?`;

const selectTransfer = `SELECT filing_no AS filingNo, position AS sequence, event, at, salt, leaf_index AS leafIndex
  FROM provenance_record WHERE filing_no = ? AND position = ?`;

const selectAct = `SELECT kind, sequence, detail, time_s AS timeS, leaf_index AS leafIndex FROM log_act WHERE sequence = ?`;

const selectLeaf = 'SELECT * FROM log_leaf WHERE id >= ? ORDER BY id LIMIT 1';

/** Records and acts that name no leaf of so many, or one that others name, too. */
const selectShared = `
  WITH record (number, sequence, leafIndex) AS (
    SELECT filing_no, 1, leaf_index FROM filing
    UNION ALL SELECT filing_no, position, leaf_index FROM provenance_record
    UNION ALL SELECT 'LOG', sequence, leaf_index FROM log_act)
  SELECT number, sequence, leafIndex FROM record
  WHERE leafIndex IS NULL OR leafIndex NOT BETWEEN 0 AND ? - 1
    OR leafIndex IN (SELECT leafIndex FROM record GROUP BY leafIndex HAVING count(*) > 1)`;
