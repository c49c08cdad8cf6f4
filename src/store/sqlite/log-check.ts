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

/** Faults after which no more are looked for. */
const faultsMax = 100;

interface LeafRow {
  readonly id: number;
  readonly data: string;
  readonly hashes: Buffer;
}

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

/** What a leaf says of itself. */
type Told = Omit<RecordLeaf, 'kind'>;

/**
 * Computes the evidence log of a database that nobody changes again from its leaves, one after the other, and holds it
 * against the records and acts: what is wrong, a line each and `faultsMax` of them at most. The hashes of all subtrees are those
 * of the leaves, published checkpoints have their roots; each leaf is that of one record or act, and each of those has a leaf; filings are what their evidence
 * hashes were made of.
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

  for (const leaf of client.prepare<[], LeafRow>(selectLeaves).iterate()) {
    if (leaf.id !== tree.size) return [...faults, `leaf ${tree.size} of the evidence log is not there`];
    const appended = appendLeaf(tree, leafHash(leaf.data));
    tree = appended.tree;
    const fault = Buffer.concat(appended.completed).equals(leaf.hashes)
      ? faultOfLeaf(leaf)
      : `leaf ${leaf.id} of the evidence log is not what its hashes were made of`;
    if (fault !== undefined) faults.push(fault);
    const root = published.get(tree.size);
    if (root !== undefined && root !== Buffer.from(rootOf(tree.roots)).toString('base64'))
      faults.push(`the published checkpoint of ${tree.size} leaves is not of this evidence log`);
    published.delete(tree.size);
    if (faults.length >= faultsMax) return faults;
  }
  for (const size of published.keys())
    faults.push(`a checkpoint of ${size} leaves was published, and the evidence log has ${tree.size}`);
  return faults.length > 0 ? faults : client.prepare<[], string>(selectWithoutLeaf).pluck().all();

  /** What is wrong with the record or act that a leaf is of. */
  function faultOfLeaf({ id, data }: LeafRow): string | undefined {
    const told = toldBy(data);
    if (told === undefined) return `leaf ${id} of the evidence log is none that artseal makes`;
    const { number, sequence } = told;
    if (number === 'LOG') return faultOfAct(id, data, act.get(sequence));
    const name = sequence === 1 ? number : `record ${sequence} of ${number}`;
    const row = sequence === 1 ? filing.get(number) : transfer.get(number, sequence);
    if (row === undefined || row.leafIndex !== id)
      return `leaf ${id} of the evidence log is of ${name}, which is not there or names another leaf`;
    const isErased = row.salt === null;
    const hash = 'hash' in row ? hashOfFiling(row) : recordHash(row);
    if (hash === undefined) return `${name} is not what its evidence hash was made of`;
    const commitment = isErased ? told.commitment : commitmentTo(hash, row.salt);
    const kind = 'hash' in row ? 'FILING' : row.event;
    return recordLeafData({ kind, number, sequence, timeS: told.timeS, commitment }) === data
      ? undefined
      : `${name} is not what leaf ${id} of the evidence log commits to`;
  }
}

/** The hash of what a filing says now; undefined if it is another one than it was given. One that is erased has none. */
function hashOfFiling({ hash, salt, leafIndex, erasedAtS, price, ...row }: FilingRow): string | undefined {
  const isErased = erasedAtS !== null;
  if (isErased !== (salt === null)) return undefined;
  if (isErased) return hash === '' ? hash : undefined;
  const computed = evidenceHash({ ...row, price: BigInt(price) });
  return computed === hash ? hash : undefined;
}

function faultOfAct(id: number, data: string, row: ActRow | undefined): string | undefined {
  const isItsLeaf = row !== undefined && row.leafIndex === id && dataOf(row) === data;
  return isItsLeaf ? undefined : `leaf ${id} of the evidence log is of no act that the database has`;
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

const selectLeaves = 'SELECT id, data, hashes FROM log_leaf ORDER BY id';

const selectCheckpoints = `SELECT size, note FROM log_checkpoint JOIN log_origin
  ON log_origin.id = (SELECT max(id) FROM log_origin) AND substr(note, 1, length(origin) + 1) = origin || char(10)
  ORDER BY size`;

const selectFiling = `SELECT author, era, size, material, condition, price, hash, timestamp, filing_no AS filingNo, salt,
  leaf_index AS leafIndex, erased_at_s AS erasedAtS FROM filing WHERE filing_no = ?`;

const selectTransfer = `SELECT filing_no AS filingNo, position AS sequence, event, at, salt, leaf_index AS leafIndex
  FROM provenance_record WHERE filing_no = ? AND position = ?`;

const selectAct = `SELECT kind, sequence, detail, time_s AS timeS, leaf_index AS leafIndex FROM log_act WHERE sequence = ?`;

/** Records and acts whose leaf is that of another one, or not there. The leaves have named all others. */
const selectWithoutLeaf = `
  SELECT filing_no || ' has no leaf in the evidence log' FROM filing
    LEFT JOIN log_leaf ON log_leaf.id = leaf_index AND data ->> 'number' = filing_no AND data ->> 'sequence' = 1
    WHERE log_leaf.id IS NULL
  UNION ALL SELECT 'record ' || position || ' of ' || filing_no || ' has no leaf in the evidence log' FROM provenance_record
    LEFT JOIN log_leaf ON log_leaf.id = leaf_index AND data ->> 'number' = filing_no AND data ->> 'sequence' = position
    WHERE log_leaf.id IS NULL
  UNION ALL SELECT 'act ' || sequence || ' of the evidence log has no leaf in it' FROM log_act
    LEFT JOIN log_leaf ON log_leaf.id = leaf_index AND data ->> 'number' = 'LOG' AND data ->> 'sequence' = sequence
    WHERE log_leaf.id IS NULL
  LIMIT ${faultsMax}`;
