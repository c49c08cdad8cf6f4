import Sqlite from 'better-sqlite3';
import { faultsBySqlite } from './damage.ts';
import { busyTimeoutMs } from './database.ts';
import { schemaOf } from './migrations.ts';
import type { NumberGap } from './restorations.ts';

/** Facts of a database of any schema. */
export interface DatabaseFacts {
  readonly schema: number;
  readonly environment: string;
  readonly currency: string;
  readonly provider: string | null;
  readonly filings: number;
  /** The last filing number of each year. */
  readonly lastFilings: Readonly<Record<string, string>>;
  readonly orders: number;
  /** How many escrow ids of each year were given out. */
  readonly escrowIds: Readonly<Record<string, number>>;
  /** What restorations left out. */
  readonly numberGaps: readonly NotedGap[];
}

/** Numbers that a restoration left out, and when: Unix seconds. */
export type NotedGap = NumberGap & { readonly restoredAtS: number };

/** Pages that are copied at a time, before other work of the process has its turn: 4 MiB. */
const pagesPerStep = 1_024;

/**
 * Copies a database that may be in use to a new file, as it is at one moment. Who writes meanwhile is not held up, and
 * does not hold this up: all is read in one transaction, and the log grows by what is written until it ends. The copy is
 * one file without a log. `onBytes` is told how much of the copy is done.
 */
export async function copyDatabase(from: string, to: string, onBytes: (done: number) => void): Promise<void> {
  const source = new Sqlite(from, { fileMustExist: true, timeout: busyTimeoutMs });
  try {
    source.pragma('query_only = ON');
    const pageBytes = Number(source.pragma('page_size', { simple: true }));
    source.exec('BEGIN');
    // The snapshot is that of the first read. Without it each write of another process would begin the copy anew.
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

/** Reads a copy that nobody else uses. */
function read<T>(file: string, work: (client: Sqlite.Database) => T): T {
  const client = new Sqlite(file, { readonly: true, fileMustExist: true });
  try {
    return work(client);
  } finally {
    client.close();
  }
}

/**
 * What SQLite finds wrong with a copy, a line each and at most 100 of them; QUICK leaves out whether indexes agree with
 * rows.
 */
export function damagesIn(file: string, how: 'QUICK' | 'FULL'): readonly string[] {
  const pragma = how === 'QUICK' ? 'quick_check' : 'integrity_check';
  try {
    const lines = read(file, (client) => faultsBySqlite(client, pragma, 100));
    return lines.map((line) => line.replaceAll(/\s+/g, ' '));
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** Reads what a copy holds. Throws if it is no database of artseal. */
export function factsOf(file: string): DatabaseFacts {
  return read(file, (client) => {
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

/** The sealed secrets of all keys in a copy that are not revoked, those of the evidence log among them. */
export function sealedSecretsOf(file: string): readonly Uint8Array[] {
  return read(file, (client) => {
    const all = (query: string) => client.prepare<[], Buffer>(query).pluck().all();
    return [
      ...all("SELECT sealed_secret FROM api_key WHERE status <> 'REVOKED'"),
      ...all("SELECT sealed_seed FROM log_key WHERE sealed_seed <> x''"),
    ];
  });
}

/** The checkpoints that a copy keeps, by their sizes, and the verifier keys that its log ever had. */
export function checkpointsOf(file: string): {
  readonly notes: readonly { readonly size: number; readonly note: string }[];
  readonly vkeys: readonly string[];
} {
  return read(file, (client) => ({
    notes: client
      .prepare<[], { size: number; note: string }>('SELECT size, note FROM log_checkpoint ORDER BY size')
      .all(),
    vkeys: client.prepare<[], string>('SELECT vkey FROM log_key ORDER BY id').pluck().all(),
  }));
}
