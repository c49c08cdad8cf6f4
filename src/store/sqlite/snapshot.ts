import Sqlite from 'better-sqlite3';
import type { NumberGap } from '../handlers/restorations.ts';
import { faultsBySqlite } from './database.ts';
import { busyTimeoutMs, readDatabase } from './reading.ts';
import { schemaOf, tooNew } from './upgrade.ts';

/** Facts about a database of any schema. */
export interface DatabaseFacts {
  readonly schema: number;
  readonly environment: string;
  readonly currency: string;
  readonly provider: string | null;
  readonly filings: number;
  /** The last filing number of each year. */
  readonly lastFilings: Readonly<Record<string, string>>;
  readonly orders: number;
  /** The number of escrow ids of each year. */
  readonly escrowIds: Readonly<Record<string, number>>;
  /** The numbers that restores skipped. */
  readonly numberGaps: readonly NotedGap[];
}

/** Numbers that a restore skipped, and when, Unix seconds. */
export type NotedGap = NumberGap & { readonly restoredAtS: number };

/** Pages that are copied before other work of the process has its turn: 4 MiB. */
const pagesPerStep = 1_024;

/**
 * Copies a database that may be in use to a new file, as of one moment. It neither blocks writers nor waits for them: it reads in
 * one transaction, and the log grows by what is written until that ends. The copy is one file without a log. Calls `onBytes` with
 * the bytes that are copied.
 */
export async function copyDatabase(from: string, to: string, onBytes: (done: number) => void): Promise<void> {
  const source = new Sqlite(from, { fileMustExist: true, timeout: busyTimeoutMs });
  try {
    source.pragma('query_only = ON');
    const pageBytes = Number(source.pragma('page_size', { simple: true }));
    source.exec('BEGIN');
    // The snapshot is of the first read. Without it, each write of another process would restart the copy.
    source.prepare('SELECT count(*) FROM sqlite_schema').get();
    await source.backup(to, {
      progress: ({ totalPages, remainingPages }) => {
        onBytes((totalPages - remainingPages) * pageBytes);
        return pagesPerStep;
      },
    });
  } finally {
    source.close();
  }
  const copy = new Sqlite(to);
  copy.pragma('journal_mode = DELETE');
  copy.close();
}

/**
 * The faults that SQLite finds in a copy, a line each, 100 at most. QUICK does not compare indexes with rows.
 */
export function damagesIn(file: string, how: 'QUICK' | 'FULL'): readonly string[] {
  const pragma = how === 'QUICK' ? 'quick_check' : 'integrity_check';
  try {
    const lines = readDatabase(file, (client) => faultsBySqlite(client, pragma, 100));
    return lines.map((line) => line.replaceAll(/\s+/g, ' '));
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** Why this version cannot use a copy, which the reason calls `name`; undefined if it can. */
export const tooNewIn = (file: string, name: string): string | undefined =>
  readDatabase(file, (client) => tooNew(client, name));

/** Reads the facts about a copy. Throws if it is no database of artseal. */
export function factsOf(file: string): DatabaseFacts {
  return readDatabase(file, (client) => {
    const one = <Row>(query: string) => client.prepare<[], Row>(query).get();
    const pairs = <Value>(query: string): Record<string, Value> =>
      Object.fromEntries(client.prepare<[], [string, Value]>(query).raw().all());
    const stamp = one<Record<'environment' | 'currency' | 'provider', string>>('SELECT * FROM deployment');
    return {
      schema: schemaOf(client),
      environment: stamp?.environment ?? '',
      currency: stamp?.currency ?? '',
      provider: stamp?.provider ?? null,
      filings: one<{ n: number }>('SELECT count(*) AS n FROM filing')?.n ?? 0,
      lastFilings: pairs('SELECT substr(filing_no, 4, 4), max(filing_no) FROM filing GROUP BY 1'),
      orders: one<{ n: number }>('SELECT count(*) AS n FROM escrow')?.n ?? 0,
      escrowIds: pairs("SELECT year, last FROM number_sequence WHERE kind = 'ESCROW'"),
      numberGaps: client.prepare<[], NotedGap>(selectGaps).all(),
    };
  });
}

const selectGaps = `SELECT kind, year, after, through, restored_at_s AS restoredAtS
  FROM number_gap JOIN restoration ON restoration.id = restoration_id ORDER BY kind DESC, year, after`;

/** The encrypted secrets of all keys in a copy that are not revoked, and of the keys of the evidence log. */
export function sealedSecretsOf(file: string): readonly Uint8Array[] {
  return readDatabase(file, (client) => {
    const all = (query: string) => client.prepare<[], Buffer>(query).pluck().all();
    return [
      ...all("SELECT sealed_secret FROM api_key WHERE status <> 'REVOKED'"),
      ...all("SELECT sealed_seed FROM log_key WHERE sealed_seed <> x''"),
    ];
  });
}

/** The checkpoints that a copy keeps, and all verifier keys of its log. */
export function checkpointsOf(file: string): {
  readonly notes: readonly { readonly size: number; readonly note: string }[];
  readonly vkeys: readonly string[];
} {
  return readDatabase(file, (client) => ({
    notes: client
      .prepare<[], { size: number; note: string }>('SELECT size, note FROM log_checkpoint ORDER BY size')
      .all(),
    vkeys: client.prepare<[], string>('SELECT vkey FROM log_key ORDER BY id').pluck().all(),
  }));
}
