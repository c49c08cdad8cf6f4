import { copyFileSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { keepEventPlaces, type OpenUrl, takeBack } from './downgrade-steps.ts';
import {
  databaseBytes,
  freeBytes,
  makePrivateFile,
  megabytes,
  syncFile,
  syncFolder,
} from './durable-files.ts';
import { DatabaseError, databaseFile } from './location.ts';
import { logSchema, schemaOf } from './migrations.ts';
import { takeServingLock } from './serving-lock.ts';
import { copiesOf, copyBefore, type Former, leftOf } from './upgrade.ts';

/** What became of a database that was brought back to an earlier schema. */
export interface WentBack {
  readonly database: string;
  readonly schema: number;
  /** Where the database of the newer version is now. */
  readonly left: string;
  /** Filings made since the upgrade, which were carried over. */
  readonly filings: number;
  /** Ids of the orders that were opened since, which the earlier version does not know. */
  readonly lostOrders: readonly string[];
  /** Ids of the orders that were in another state before, and are in that one again until the provider is asked. */
  readonly changedOrders: readonly string[];
  /** How many filings were erased since, which are there again if the earlier version had them. */
  readonly erased: number;
  /** Whether the earlier version has no evidence log, while this one may have published one. */
  readonly leavesLog: boolean;
  /** Whether nonces spent since could not be carried over, so that requests of that time could be carried out again. */
  readonly forgetsNonces: boolean;
}

/** Of the schemas in which something began to be stored as it is now. */
const since = {
  lookUps: 4,
  platformStatus: 5,
  outcomes: 7,
  nonces: 8,
  numbersByFilings: 9,
  reviews: 11,
  scopes: 14,
  parties: 14,
  erasure: logSchema,
} as const;

/** What is needed free beside a database, as a multiple of it: the draft, and as much again while it is written. */
const roomFactor = 2;

/**
 * Brings the database in a folder back to what the version before the last upgrade knows, so that no number is given twice
 * and no key that was revoked is good again. The database of today is kept beside it.
 *
 * - To a schema that has an evidence log: all of today, converted.
 * - To an earlier one: the copy that was made before the upgrade, with the filings, platforms, keys, tokens and counts of
 *   today. Orders stay as they were in the copy.
 *
 * Throws DatabaseError if it is served or changed meanwhile, if there is no copy or no room, or if one of today is kept already;
 * and what `openUrl` throws.
 */
export function goBack(dataDir: string, openUrl: OpenUrl): WentBack {
  const database = databaseFile(dataDir);
  const folder = dirname(database);
  if (!existsSync(database)) throw new DatabaseError(`there is no database in ${folder}.`);
  const lock = takeServingLock(dataDir);
  const draft = `${database}.back`;
  try {
    const newer = schemaIn(database);
    const copy = copiesOf(database).find(({ schema }) => schema < newer);
    if (copy === undefined)
      throw new DatabaseError(
        `there is no copy of an earlier version beside ${database}, as an upgrade makes it (${copyBefore(database, newer - 1)}).`,
      );
    const left = leftOf(database, newer);
    // It may be all that there is of orders that were not carried over.
    if (existsSync(left))
      throw new DatabaseError(`${left} is there, from going back before: move it elsewhere first.`);
    refuseOpened(database);
    const was = stateOf(database);
    removeDatabase(draft);
    refuseWithoutRoom(database);
    const carried =
      copy.schema < logSchema ? carryOver(copy, database, draft) : convert(copy, database, draft, openUrl);
    keepEventPlaces(database, draft);
    syncFile(draft);
    refuseOpened(database);
    if (stateOf(database) !== was)
      throw new DatabaseError(`another process changed ${database} meanwhile: run this again.`);
    // At each moment one of them is there under its name.
    linkSync(database, left);
    renameSync(draft, database);
    syncFolder(folder);
    return { database, left, schema: copy.schema, ...carried };
  } finally {
    removeDatabase(draft);
    lock.release();
  }
}

/** Removes a file of SQLite with what it keeps beside it, which would be a part of another file by that name. */
function removeDatabase(file: string): void {
  for (const end of ['', '-journal', '-wal', '-shm']) rmSync(file + end, { force: true });
}

function refuseWithoutRoom(database: string): void {
  const [needed, free] = [roomFactor * databaseBytes(database), freeBytes(dirname(database))];
  if (free < needed)
    throw new DatabaseError(
      `going back needs ${megabytes(needed)} free beside ${database}, and ${megabytes(free)} are: make room first.`,
    );
}

/** Changes with whatever is written to a database whose log is empty. */
function stateOf(database: string): string {
  const { mtimeNs, size } = statSync(database, { bigint: true });
  return `${mtimeNs} ${size}`;
}

/** The schema of a database; its log is written into it, if nobody else has it open. */
function schemaIn(database: string): number {
  const client = new Sqlite(database, { fileMustExist: true });
  try {
    return schemaOf(client);
  } finally {
    client.close();
  }
}

/** The last connection removes the log, so there is another one while it is there. */
function refuseOpened(database: string): void {
  if (existsSync(`${database}-wal`))
    throw new DatabaseError(`another process has ${database} open: wait until it has ended.`);
}

/** What became of what is in a database. */
type Carried = Omit<WentBack, 'database' | 'left' | 'schema'>;

/** Makes a database of the schema of a copy, with all that is in a later one. */
function convert({ file, schema }: Former, later: string, draft: string, openUrl: OpenUrl): Carried {
  const filingsBefore = filingsIn(file);
  makePrivateFile(draft);
  const client = new Sqlite(later, { fileMustExist: true });
  try {
    // Without a log of its own, unlike a copy of the file: what it is renamed to must be whole.
    client.prepare('VACUUM INTO ?').run(draft);
  } finally {
    client.close();
  }
  takeBack(draft, schema, openUrl);
  return {
    filings: filingsIn(draft) - filingsBefore,
    lostOrders: [],
    changedOrders: [],
    erased: 0,
    leavesLog: false,
    forgetsNonces: false,
  };
}

function filingsIn(file: string): number {
  let client: Sqlite.Database | undefined;
  try {
    client = new Sqlite(file, { readonly: true });
    return client.prepare<[], number>('SELECT count(*) FROM filing').pluck().get() ?? 0;
  } catch (error) {
    throw new DatabaseError(`${file} cannot be read: ${(error as Error).message}.`);
  } finally {
    client?.close();
  }
}

/** Makes a database of a copy, with what it can hold of a later one. */
function carryOver(copy: Former, later: string, draft: string): Carried {
  const { schema } = copy;
  copyFileSync(copy.file, draft);
  const client = new Sqlite(draft);
  try {
    client.pragma('foreign_keys = OFF');
    client.prepare('ATTACH ? AS later').run(later);
    const carried = client.transaction(() => {
      for (const table of ['caller', 'api_key', 'usage']) carryTable(client, table);
      if (schema < since.scopes) client.exec(tokensWithoutScopes);
      else carryTable(client, 'service_token');
      if (schema < since.platformStatus) client.exec(suspendKeysOfPlatforms);
      if (schema >= since.nonces) carryTable(client, 'spent_nonces');
      if (schema >= since.parties) carryParties(client);
      carryTable(client, 'number_sequence', "kind = 'ESCROW'");
      const filings = carryTable(
        client,
        'filing',
        'filing_no NOT IN (SELECT filing_no FROM main.filing) ORDER BY id',
        'INSERT',
      );
      const hasErased = schemaOf(client, 'later') >= since.erasure;
      if (schema < since.numbersByFilings) client.exec(numbersAndSourceRecords);
      if (schema >= since.outcomes) carryTable(client, 'idempotency_key', 'outcome IS NOT NULL');
      if (schema >= since.lookUps)
        client.exec(askAboutOpenOrders(schema < since.reviews ? 'attention' : 'review'));
      const ids = (query: string) => client.prepare<[], string>(query).pluck().all();
      return {
        filings,
        lostOrders: ids(selectLostOrders),
        changedOrders: ids(selectChangedOrders),
        erased: hasErased ? (client.prepare<[], number>(countErased).pluck().get() ?? 0) : 0,
        leavesLog: true,
        forgetsNonces: schema < since.nonces,
      };
    })();
    client.exec('DETACH later');
    const [violation] = client.pragma('foreign_key_check') as unknown[];
    if (violation !== undefined)
      throw new Error(`A row was carried over without what it refers to: ${JSON.stringify(violation)}.`);
    return carried;
  } finally {
    client.close();
  }
}

/** Triggers keep rows of both tables from being replaced: those that are there stay, but for the end of a party. */
function carryParties(client: Sqlite.Database): void {
  client.exec(endParties);
  for (const table of ['party', 'audit_entry'])
    carryTable(client, table, `id NOT IN (SELECT id FROM main.${table}) ORDER BY id`, 'INSERT');
}

const endParties = `UPDATE main.party SET removed_at_s = later.removed_at_s FROM later.party AS later
  WHERE later.id = party.id AND party.removed_at_s IS NULL AND later.removed_at_s IS NOT NULL`;

const countErased = 'SELECT count(*) FROM later.filing WHERE erased_at_s IS NOT NULL';

/** Carries the rows of a table over, in the columns that both schemas have; how many. */
function carryTable(
  client: Sqlite.Database,
  table: string,
  which = 'true',
  how = 'INSERT OR REPLACE',
): number {
  const columns = client
    .prepare<[], string>(
      `SELECT name FROM pragma_table_info('${table}', 'main')
       INTERSECT SELECT name FROM pragma_table_info('${table}', 'later')`,
    )
    .pluck()
    .all()
    .map((name) => `"${name}"`)
    .join(', ');
  return client
    .prepare(`${how} INTO main.${table} (${columns}) SELECT ${columns} FROM later.${table} WHERE ${which}`)
    .run().changes;
}

/** Where platforms have no status yet, their keys have to say it. */
const suspendKeysOfPlatforms = `UPDATE main.api_key SET status = 'SUSPENDED'
  WHERE status = 'ACTIVE' AND caller_id IN (SELECT id FROM later.caller WHERE status = 'SUSPENDED')`;

/**
 * Before tokens had scopes, each might do everything but govern: those that may do less, end or act for a platform are
 * revoked.
 */
const tokensWithoutScopes = `
  INSERT OR REPLACE INTO main.service_token
      (id, token_id, sha256, caller_id, operator, created_at_s, revoked_at_s)
    SELECT id, token_id, sha256, caller_id, instr(scopes, 'operate ') > 0, created_at_s,
      CASE WHEN instr(scopes, 'read file escrow ') = 1 AND expires_at_s IS NULL AND platform_id IS NULL
        THEN revoked_at_s ELSE ifnull(revoked_at_s, unixepoch()) END
    FROM later.service_token`;

/** What was stored beside each filing, before the filing itself told it. */
const numbersAndSourceRecords = `
  INSERT INTO main.provenance_record (filing_no, position, event, at, recorded_at_s)
    SELECT filing_no, 1, 'SUBMITTED', substr(timestamp, 1, 10), filed_at_s FROM main.filing
    WHERE filing_no NOT IN (SELECT filing_no FROM main.provenance_record WHERE position = 1);
  INSERT OR REPLACE INTO main.number_sequence (kind, year, last)
    SELECT 'FILING', CAST(substr(filing_no, 4, 4) AS integer), max(CAST(substr(filing_no, 9) AS integer))
    FROM main.filing GROUP BY 2`;

const askAboutOpenOrders = (needsPerson: string) =>
  `UPDATE main.escrow SET look_up_at_ms = 0 WHERE state IN ('UNPAID', 'FROZEN') AND ${needsPerson} IS NULL`;

const selectLostOrders = `SELECT escrow_id FROM later.escrow
  WHERE escrow_id NOT IN (SELECT escrow_id FROM main.escrow) ORDER BY id`;

const selectChangedOrders = `SELECT earlier.escrow_id FROM main.escrow AS earlier
  JOIN later.escrow AS later USING (escrow_id) WHERE earlier.state <> later.state ORDER BY earlier.id`;
