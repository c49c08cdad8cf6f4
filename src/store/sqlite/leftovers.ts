import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** What SQLite writes when it makes a file a database with a write-ahead log, before any table is in it. */
const firstPageBytes = 4_096;
const logHeaderBytes = 32;
const frameHeaderBytes = 24;
/** Pages of a new database that are looked at; it has some forty. */
const firstPagesMax = 1_000;

/**
 * What is wrong, in words for the operator, if a database is gone while files are there that are only ever made once it
 * was complete: to make one beside them, or to open an empty file there, would have SQLite drop the log of the lost one.
 * Undefined if all is well. `madeLater` are names of such files in its folder. Nothing is written, and the database is
 * not opened: closing it would drop the locks that this process has on it.
 */
export function findLost(database: string, madeLater: readonly string[]): string | undefined {
  const isThere = (name: string) => existsSync(join(dirname(database), name));
  const [log, memory] = [`${basename(database)}-wal`, `${basename(database)}-shm`];
  // Before the database is looked at, since another process may be making it: it is there before any of them.
  const proofs = madeLater.find(isThere);
  const ofSqlite = [log, memory].find(isThere);
  const bytes = statSync(database, { throwIfNoEntry: false })?.size;
  if (bytes === undefined) return lost(database, 'missing', ofSqlite ?? proofs);
  if (bytes === 0) return lost(database, 'empty', ofSqlite ?? proofs);
  if (bytes > firstPageBytes) return undefined;
  // All that is in the database, if anything is, is in its log.
  const content = logContent(join(dirname(database), log));
  if (content === 'WHOLE') return undefined;
  return lost(database, 'without content', content === 'REST' ? log : proofs);
}

function lost(database: string, how: string, proof: string | undefined): string | undefined {
  return proof === undefined
    ? undefined
    : `${database} is ${how}, but ${proof} is there: it was moved or removed. Put it back; or use an empty folder.`;
}

/** Whether a log holds a database from its first page on, or only what came later to one, or nothing committed. */
function logContent(file: string): 'WHOLE' | 'REST' | 'NOTHING' {
  if (!existsSync(file)) return 'NOTHING';
  const descriptor = openSync(file, 'r');
  try {
    const frame = Buffer.alloc(frameHeaderBytes);
    for (let page = 1; page <= firstPagesMax; page += 1) {
      const at = logHeaderBytes + (page - 1) * (frameHeaderBytes + firstPageBytes);
      if (readSync(descriptor, frame, 0, frameHeaderBytes, at) < frameHeaderBytes) return 'NOTHING';
      // The transaction that makes a database writes its pages in order; the last one bears their number.
      if (frame.readUInt32BE(0) !== page) return 'REST';
      if (frame.readUInt32BE(4) !== 0) return frame.readUInt32BE(4) === page ? 'WHOLE' : 'REST';
    }
    return 'REST';
  } finally {
    closeSync(descriptor);
  }
}
