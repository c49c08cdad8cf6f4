import { asc, desc, type InferSelectModel } from 'drizzle-orm';
import { erasedArtwork, evidenceHash } from '../../domain/filing.ts';
import { filingCommitment } from '../../domain/filing-record.ts';
import { commitmentTo, type LogEventDetail, logEventLeafData, recordLeafData } from '../../domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash, rootOf, treeHashBytes } from '../../domain/merkle.ts';
import { type LaterRecord, recordHash } from '../../domain/provenance.ts';
import { type Erasure, type Erasures, parsed, readErasures } from './erasure-check.ts';
import { type IndexedLeaf, type LeafRow, leavesIn } from './leaves.ts';
import {
  contentOf,
  type LeafContent,
  pageSize,
  pagesOf,
  type Records,
  readLeaf,
  readRecords,
} from './log-pages.ts';
import { faultsInLogTables } from './log-tables-check.ts';
import { logCheckpoint, type logEvent, logOrigin } from './schema.ts';
import type { Database } from './statement.ts';
import type { StoredFiling } from './stored-filing.ts';

/** The check ends after so many faults. */
export const faultsMax = 100;

/** The columns of a record that its leaf needs. */
interface Kept {
  readonly salt: Buffer | null;
  readonly leafIndex: number;
  /** When it was recorded, Unix seconds. */
  readonly timeS: number;
  /** When its filing was erased; null if it was not. */
  readonly erasedAtS: number | null;
}

type LogEventRow = InferSelectModel<typeof logEvent>;

/** A record or log event that names a leaf. */
interface RecordRow {
  readonly number: string;
  readonly sequence: number;
  readonly leafIndex: number;
}

/**
 * Verifies the evidence log of a database, page by page, in an open transaction if anybody writes to it. Returns the faults, a line
 * each, about `faultsMax` at most. It checks that
 * - the stored hashes are those of the leaves, and the roots those of the kept checkpoints;
 * - each leaf belongs to one record or log event, and each of these has a leaf;
 * - filings match their evidence hashes;
 * - exactly the records that the log lists as erased are erased.
 * Without faults it also checks the other tables that log events describe, and what only one engine has.
 */
export async function faultsInLog(
  database: Database,
  faultsOfEngine: () => Iterable<string> = () => [],
): Promise<readonly string[]> {
  const { origin = '', roots: published, faults: faultsInNotes } = await publishedIn(database);
  const erasures = await readErasures(database, origin);
  const faultOfContent = createContentCheck(erasures);
  const faults: string[] = [...faultsInNotes, ...erasures.faults];
  let tree = emptyTree;

  for await (const rows of pagesOf(database)) {
    const { leaves, fault } = leavesOf(rows, tree.size);
    for (let from = 0; from < leaves.length; from += pageSize) {
      const some = leaves.slice(from, from + pageSize);
      const records = await readRecords(database, some);
      for (const leaf of some) {
        faults.push(...(await faultsOfLeaf(leaf, records)));
        if (faults.length >= faultsMax) return faults;
      }
    }
    // Later leaves are hashed together with them.
    if (fault !== undefined) return [...faults, fault];
  }
  for (const size of published.keys())
    faults.push(`a checkpoint of ${size} leaves was published, and the evidence log has ${tree.size}`);
  return faults.length > 0 ? faults : faultsInTables(database, tree.size, faultsOfEngine);

  /** Appends the next leaf to the tree. Returns the faults of the leaf, and of the checkpoint of that tree. */
  async function faultsOfLeaf(leaf: IndexedLeaf, records: Records): Promise<readonly string[]> {
    const appended = appendLeaf(tree, leafHash(leaf.data));
    tree = appended.tree;
    const level = wrongLevel(appended.completed, leaf.hashes);
    const fault =
      level === undefined ? faultOfContent(leaf, records) : await faultOfHashes(database, leaf, level);
    const root = published.get(tree.size);
    published.delete(tree.size);
    const isAsPublished = root === undefined || root === Buffer.from(rootOf(tree.roots)).toString('base64');
    const faultOfRoot = `the published checkpoint of ${tree.size} leaves is not of this evidence log`;
    return [...(fault === undefined ? [] : [fault]), ...(isAsPublished ? [] : [faultOfRoot])];
  }
}

/** The leaves of rows, from the leaf `next` on, up to the first fault. */
function leavesOf(rows: readonly LeafRow[], next: number) {
  const leaves: IndexedLeaf[] = [];
  for (const row of rows) {
    const expected = next + leaves.length;
    if (row.first !== expected) return { leaves, fault: `leaf ${expected} of the evidence log is not there` };
    const ofRow = leavesIn(row);
    if (ofRow === undefined)
      return {
        leaves,
        fault: `the leaves ${row.first} to ${row.id} of the evidence log are not what was written`,
      };
    leaves.push(...ofRow);
  }
  return { leaves, fault: undefined };
}

/** Returns a function that checks the record or log event of a leaf. Call it with the leaves in their order. */
function createContentCheck(erasures: Erasures): (leaf: IndexedLeaf, records: Records) => string | undefined {
  return ({ index, data }, { filings, transfers, events }) => {
    const content = contentOf(data);
    if (content === undefined)
      return `leaf ${index} of the evidence log has a form that artseal does not write`;
    const { number, sequence } = content;
    const erasure = erasures.of(index);
    if (number === 'LOG')
      return erasure === undefined
        ? faultOfLogEvent(index, data, events.get(sequence))
        : `log event ${erasure.event} says that leaf ${index} was erased, which is of no record`;
    const name = nameOf(content);
    const row = sequence === 1 ? filings.get(number) : transfers.get(`${number} ${sequence}`);
    if (row === undefined || row.leafIndex !== index)
      return `leaf ${index} of the evidence log is of ${name}, which is not there or names another leaf`;
    const hash = 'hash' in row ? hashOfFiling(row) : recordHash(row);
    if (hash === undefined) return `${name} is not what its evidence hash was made of`;
    const { salt, timeS } = row;
    const commitment = salt === null ? content.commitment : commitmentOf(row, hash, salt);
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
async function faultOfHashes(
  database: Database,
  { index, data }: IndexedLeaf,
  level: number,
): Promise<string> {
  const first = index + 1 - 2 ** level;
  if (first === index)
    return `leaf ${index} of the evidence log (${nameIn(data)}) is not what its hashes were made of`;
  const names = `${nameIn(await readLeaf(database, first))} to ${nameIn(data)}`;
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
async function faultsInTables(
  database: Database,
  size: number,
  faultsOfEngine: () => Iterable<string>,
): Promise<readonly string[]> {
  const surplus = await faultsOfSurplus(database, size);
  // A surplus filing breaks a chain as well.
  const ofRows = surplus.length > 0 ? surplus : faultsOfEngine();
  return [...ofRows, ...(await faultsInLogTables(database))];
}

/** The faults of records and log events that have no leaf of their own. */
async function faultsOfSurplus(database: Database, size: number): Promise<readonly string[]> {
  /** The leaves whose own record or log event was found. */
  const owned = new Set<number>();
  const isOwn = async ({ number, sequence, leafIndex }: RecordRow) => {
    const content = contentOf(await readLeaf(database, leafIndex));
    return content?.number === number && content.sequence === sequence && !owned.has(leafIndex);
  };
  const faults: string[] = [];
  for (const record of (await database.$driver.all(selectShared, [size])) as RecordRow[]) {
    if (await isOwn(record)) owned.add(record.leafIndex);
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
function hashOfFiling(row: StoredFiling): string | undefined {
  const { hash, salt, erasedAtS } = row;
  if ((erasedAtS === null) !== (salt !== null)) return undefined;
  if (erasedAtS === null) return evidenceHash(row) === hash ? hash : undefined;
  const isEmpty = Object.entries({ ...erasedArtwork, hash: '', attachments: null }).every(
    ([name, value]) => row[name as keyof StoredFiling] === value,
  );
  return isEmpty ? hash : undefined;
}

/** The commitment of the leaf of a filing or later record with that hash. */
const commitmentOf = (row: StoredFiling | LaterRecord, hash: string, salt: Buffer): string =>
  'hash' in row ? filingCommitment(row, salt, hash) : commitmentTo(hash, salt);

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

/** The data of the leaf of a log event. */
function dataOf({ kind, sequence, timeS, detail: text }: LogEventRow): string {
  return logEventLeafData({ kind, sequence, timeS, detail: parsed(text) as LogEventDetail });
}

/** The name of the log, the roots of the kept checkpoints, base64, by their sizes; and those that are not of this log. */
async function publishedIn(database: Database) {
  const { origin } =
    (await database.select().from(logOrigin).orderBy(desc(logOrigin.id)).limit(1).get()) ?? {};
  const roots = new Map<number, string>();
  const faults: string[] = [];
  const { size: sizeOf, note: noteOf } = logCheckpoint;
  const kept = await database
    .select({ size: sizeOf, note: noteOf })
    .from(logCheckpoint)
    .orderBy(asc(sizeOf))
    .all();
  for (const { size, note } of kept) {
    const [name, sizeText, root = ''] = note.split('\n');
    if (name === origin && sizeText === String(size)) roots.set(size, root);
    else faults.push(`the kept checkpoint of ${size} leaves is of another log or size`);
  }
  return { origin, roots, faults };
}

/** Records and log events that name a leaf which does not exist, or which others name as well. At least every second is a fault. */
const selectShared = `
  WITH record (number, sequence, "leafIndex") AS (
    SELECT filing_no, 1, leaf_index FROM filing
    UNION ALL SELECT filing_no, position, leaf_index FROM provenance_record
    UNION ALL SELECT 'LOG', sequence, leaf_index FROM log_event)
  SELECT number, sequence, "leafIndex" FROM (
    SELECT record.*, count(*) OVER (PARTITION BY "leafIndex") AS sharing FROM record) AS shared
  WHERE sharing > 1 OR "leafIndex" < 0 OR "leafIndex" >= ?
  ORDER BY "leafIndex" LIMIT ${2 * faultsMax}`;
