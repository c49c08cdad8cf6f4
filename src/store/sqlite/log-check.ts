import { and, asc, desc, eq, getTableColumns, gte, type InferSelectModel, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { erasedArtwork, evidenceHash } from '../../domain/filing.ts';
import {
  commitmentTo,
  type LogEventDetail,
  logEventLeafData,
  type RecordLeaf,
  recordLeafData,
} from '../../domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash, rootOf, treeHashBytes } from '../../domain/merkle.ts';
import { recordHash } from '../../domain/provenance.ts';
import { type IndexedLeaf, leavesIn } from '../engine/leaves.ts';
import { filing, logCheckpoint, logEvent, logLeaf, logOrigin, provenanceRecord } from '../engine/schema.ts';
import { named } from '../engine/statement.ts';
import { type Erasure, type Erasures, readErasures } from './erasure-check.ts';
import { faultsInChains, faultsInLogTables } from './log-tables-check.ts';
import { readDatabase } from './reading.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** The check ends after so many faults. */
const faultsMax = 100;

/** The columns of a record that its leaf needs. */
interface Kept {
  readonly salt: Buffer | null;
  readonly leafIndex: number;
  /** When it was recorded, Unix seconds. */
  readonly timeS: number;
  /** When its filing was erased; null if it was not. */
  readonly erasedAtS: number | null;
}

type FilingRow = InferSelectModel<typeof filing>;

type LogEventRow = InferSelectModel<typeof logEvent>;

/** A record or log event that names a leaf. */
interface RecordRow {
  readonly number: string;
  readonly sequence: number;
  readonly leafIndex: number;
}

/** The content of a leaf. */
type LeafContent = Omit<RecordLeaf, 'kind'>;

/**
 * Verifies the evidence log of a database that no process changes meanwhile. Returns the faults, a line each, about `faultsMax`
 * at most. It checks that
 * - the stored hashes are those of the leaves, and the roots those of the kept checkpoints;
 * - each leaf belongs to one record or log event, and each of these has a leaf;
 * - filings match their evidence hashes;
 * - exactly the records that the log lists as erased are erased.
 * Without faults it also checks the other tables that log events describe, and the chains of filings.
 */
export function faultsInLog(file: string): readonly string[] {
  return readDatabase(file, (client) => faultsInOpenLog(drizzle({ client })));
}

/** The same for an open database. Call it in a transaction if a server may write to it. */
export function faultsInOpenLog(database: SqliteDatabase): readonly string[] {
  const { roots: published, faults: faultsInNotes } = publishedIn(database);
  const erasures = readErasures(database);
  const { leafFrom, leafRows } = prepareLeaves(database);
  const faultOfContent = createContentCheck(database, erasures);
  const faults: string[] = [...faultsInNotes, ...erasures.faults];
  let tree = emptyTree;

  for (const row of leafRows.iterate()) {
    const { first } = row;
    if (first !== tree.size) return [...faults, `leaf ${tree.size} of the evidence log is not there`];
    const leaves = leavesIn(row);
    // Later leaves are hashed together with them.
    if (leaves === undefined)
      return [...faults, `the leaves ${first} to ${row.id} of the evidence log are not what was written`];
    for (const leaf of leaves) {
      faults.push(...faultsOfLeaf(leaf));
      if (faults.length >= faultsMax) return faults;
    }
  }
  for (const size of published.keys())
    faults.push(`a checkpoint of ${size} leaves was published, and the evidence log has ${tree.size}`);
  return faults.length > 0 ? faults : faultsInTables(database, tree.size);

  /** Appends the next leaf to the tree. Returns the faults of the leaf, and of the checkpoint of that tree. */
  function faultsOfLeaf(leaf: IndexedLeaf): readonly string[] {
    const appended = appendLeaf(tree, leafHash(leaf.data));
    tree = appended.tree;
    const level = wrongLevel(appended.completed, leaf.hashes);
    const fault = level === undefined ? faultOfContent(leaf) : faultOfHashes(leaf, level, leafFrom);
    const root = published.get(tree.size);
    published.delete(tree.size);
    const isAsPublished = root === undefined || root === Buffer.from(rootOf(tree.roots)).toString('base64');
    const faultOfRoot = `the published checkpoint of ${tree.size} leaves is not of this evidence log`;
    return [...(fault === undefined ? [] : [fault]), ...(isAsPublished ? [] : [faultOfRoot])];
  }
}

/** Returns a function that checks the record or log event of a leaf. Call it with the leaves in their order. */
function createContentCheck(
  database: SqliteDatabase,
  erasures: Erasures,
): (leaf: IndexedLeaf) => string | undefined {
  const { filings, transfer, event } = prepareRecords(database);

  return ({ index, data }) => {
    const content = contentOf(data);
    if (content === undefined)
      return `leaf ${index} of the evidence log has a form that artseal does not write`;
    const { number, sequence } = content;
    const erasure = erasures.of(index);
    if (number === 'LOG')
      return erasure === undefined
        ? faultOfLogEvent(index, data, event.get({ sequence }))
        : `log event ${erasure.event} says that leaf ${index} was erased, which is of no record`;
    const name = nameOf(content);
    const row = sequence === 1 ? filings.get({ number }) : transfer.get({ number, sequence });
    if (row === undefined || row.leafIndex !== index)
      return `leaf ${index} of the evidence log is of ${name}, which is not there or names another leaf`;
    const hash = 'hash' in row ? hashOfFiling({ ...row, price: BigInt(row.price) }) : recordHash(row);
    if (hash === undefined) return `${name} is not what its evidence hash was made of`;
    const { salt, timeS } = row;
    const commitment = salt === null ? content.commitment : commitmentTo(hash, salt);
    const kind = 'hash' in row ? 'FILING' : row.event;
    if (recordLeafData({ kind, number, sequence, timeS, commitment }) !== data)
      return `${name} is not what leaf ${index} of the evidence log commits to`;
    if ('hash' in row && Date.parse(row.timestamp) !== timeS * 1_000)
      return `${name} has a timestamp of another time than leaf ${index} of the evidence log`;
    return faultOfErasure(name, row, erasure);
  };
}

/** The lowest level whose stored hash differs from the computed one; undefined if none does. */
function wrongLevel(completed: readonly Uint8Array[], stored: Buffer): number | undefined {
  const place = completed.findIndex(
    (hash, level) =>
      Buffer.compare(hash, stored.subarray(level * treeHashBytes, (level + 1) * treeHashBytes)) !== 0,
  );
  if (place >= 0) return place;
  return stored.length === completed.length * treeHashBytes ? undefined : 0;
}

/** The fault of a changed leaf or hash: names the leaves of the subtree that a leaf completes. */
function faultOfHashes(
  { index, data }: IndexedLeaf,
  level: number,
  leafFrom: ReturnType<typeof prepareLeaves>['leafFrom'],
): string {
  const first = index + 1 - 2 ** level;
  if (first === index)
    return `leaf ${index} of the evidence log (${nameIn(data)}) is not what its hashes were made of`;
  const row = leafFrom.get({ index: first });
  const firstLeaf = (row && leavesIn(row))?.find((leaf) => leaf.index === first);
  const names = `${nameIn(firstLeaf?.data ?? '')} to ${nameIn(data)}`;
  return `the leaves ${first} to ${index} of the evidence log (${names}) are not what their hashes were made of`;
}

/** Checks that a record is erased exactly if a log event says so, at that time, and after its retention. */
function faultOfErasure(
  name: string,
  { salt, erasedAtS, timeS, leafIndex }: Kept,
  erasure: Erasure | undefined,
): string | undefined {
  if (erasure === undefined)
    return salt === null || erasedAtS !== null
      ? `${name} is erased, and no log event says so of leaf ${leafIndex}`
      : undefined;
  const { event, timeS: erasedS, latestS } = erasure;
  if (salt !== null || erasedAtS === null)
    return `log event ${event} says that ${name} was erased, and it is there`;
  if (erasedAtS !== erasedS) return `${name} was erased at another time than log event ${event} says`;
  return timeS <= latestS
    ? undefined
    : `log event ${event} says that ${name} was erased, before its retention ended`;
}

/** Checks the other tables. Call it only if the leaves and their records are right. */
function faultsInTables(database: SqliteDatabase, size: number): readonly string[] {
  const surplus = faultsOfSurplus(database, size);
  // A surplus filing breaks a chain as well.
  const ofRows = surplus.length > 0 ? surplus : faultsInChains(database).take(faultsMax);
  return [...ofRows, ...faultsInLogTables(database)];
}

/** The faults of records and log events that have no leaf of their own. */
function faultsOfSurplus(database: SqliteDatabase, size: number): readonly string[] {
  const { leafFrom } = prepareLeaves(database);
  /** The leaves whose own record or log event was found. */
  const owned = new Set<number>();
  const isOwn = ({ number, sequence, leafIndex }: RecordRow) => {
    const row = leafFrom.get({ index: leafIndex });
    const content = contentOf((row && leavesIn(row))?.find(({ index }) => index === leafIndex)?.data ?? '');
    return content?.number === number && content.sequence === sequence && !owned.has(leafIndex);
  };
  const faults: string[] = [];
  for (const record of database.$client.prepare<[number], RecordRow>(selectShared).iterate(size)) {
    if (isOwn(record)) owned.add(record.leafIndex);
    else faults.push(`${nameOf(record)} has no leaf in the evidence log`);
    if (faults.length >= faultsMax) break;
  }
  return faults;
}

function nameOf({ number, sequence }: Pick<LeafContent, 'number' | 'sequence'>): string {
  if (number === 'LOG') return `log event ${sequence}`;
  return sequence === 1 ? number : `record ${sequence} of ${number}`;
}

/**
 * The evidence hash of a filing, computed again; undefined if the stored one differs. An erased filing has neither a hash nor
 * texts.
 */
function hashOfFiling(row: FilingRow): string | undefined {
  const { hash, salt, erasedAtS } = row;
  if ((erasedAtS === null) !== (salt !== null)) return undefined;
  if (erasedAtS === null) return evidenceHash(row) === hash ? hash : undefined;
  const isEmpty = Object.entries({ ...erasedArtwork, hash: '' }).every(
    ([name, value]) => row[name as keyof FilingRow] === value,
  );
  return isEmpty ? hash : undefined;
}

/** The name of the record or log event of a leaf, from its data. */
function nameIn(data: string): string {
  const content = contentOf(data);
  return content === undefined ? 'unreadable' : nameOf(content);
}

function faultOfLogEvent(index: number, data: string, row: LogEventRow | undefined): string | undefined {
  const isItsLeaf = row !== undefined && row.leafIndex === index && dataOf(row) === data;
  return isItsLeaf
    ? undefined
    : `leaf ${index} of the evidence log is of a log event that the database does not have`;
}

/** The data of the leaf of a log event; undefined if its detail is not JSON. */
function dataOf({ kind, sequence, timeS, detail: text }: LogEventRow): string | undefined {
  const detail = parsed(text);
  return detail && logEventLeafData({ kind, sequence, timeS, detail: detail as LogEventDetail });
}

/** Reads the data of a leaf; undefined if they are not JSON with these members. */
function contentOf(data: string): LeafContent | undefined {
  const { number, sequence, time, commitment = '' } = parsed(data) ?? {};
  const isRead = typeof number === 'string' && typeof sequence === 'number' && typeof time === 'number';
  return isRead ? { number, sequence, timeS: time, commitment: String(commitment) } : undefined;
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

/** The roots of the kept checkpoints, base64, by their sizes; and the checkpoints that are not of this log. */
function publishedIn(database: SqliteDatabase) {
  const { origin } = database.select().from(logOrigin).orderBy(desc(logOrigin.id)).limit(1).get() ?? {};
  const roots = new Map<number, string>();
  const faults: string[] = [];
  const kept = database.select().from(logCheckpoint).orderBy(asc(logCheckpoint.size)).all();
  for (const { size, note } of kept) {
    const [name, sizeText, root = ''] = note.split('\n');
    if (name === origin && sizeText === String(size)) roots.set(size, root);
    else faults.push(`the kept checkpoint of ${size} leaves is of another log or size`);
  }
  return { roots, faults };
}

function prepareLeaves(database: SqliteDatabase) {
  return prepare(database, {
    leafRows: database.select().from(logLeaf).orderBy(asc(logLeaf.id)),
    leafFrom: database
      .select()
      .from(logLeaf)
      .where(gte(logLeaf.id, sql.placeholder('index')))
      .orderBy(asc(logLeaf.id))
      .limit(1),
  });
}

function prepareRecords(database: SqliteDatabase) {
  const { filingNo, position: sequence, event, at, salt, leafIndex, recordedAtS: timeS } = provenanceRecord;
  const { erasedAtS } = filing;
  return prepare(database, {
    filings: database
      .select(named({ ...getTableColumns(filing), timeS: filing.filedAtS }))
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('number'))),
    transfer: database
      .select(named({ filingNo, sequence, event, at, salt, leafIndex, timeS, erasedAtS }))
      .from(provenanceRecord)
      .leftJoin(filing, eq(filing.filingNo, filingNo))
      .where(and(eq(filingNo, sql.placeholder('number')), eq(sequence, sql.placeholder('sequence')))),
    event: database
      .select(named(getTableColumns(logEvent)))
      .from(logEvent)
      .where(eq(logEvent.sequence, sql.placeholder('sequence'))),
  });
}

/** Records and log events that name a leaf which does not exist, or which others name as well. */
const selectShared = `
  WITH record (number, sequence, leafIndex) AS (
    SELECT filing_no, 1, leaf_index FROM filing
    UNION ALL SELECT filing_no, position, leaf_index FROM provenance_record
    UNION ALL SELECT 'LOG', sequence, leaf_index FROM log_event)
  SELECT number, sequence, leafIndex FROM record
  WHERE leafIndex NOT BETWEEN 0 AND ? - 1
    OR leafIndex IN (SELECT leafIndex FROM record GROUP BY leafIndex HAVING count(*) > 1)`;
