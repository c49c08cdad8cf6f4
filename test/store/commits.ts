import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The number of transactions in the write-ahead log of a data folder: the last frame of each has the size of the database. */
export function commitsIn(dataDir: string): number {
  const wal = readFileSync(join(dataDir, 'artseal.db-wal'));
  const [headerBytes, frameHeaderBytes] = [32, 24];
  const frameBytes = frameHeaderBytes + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = headerBytes; at + frameBytes <= wal.length; at += frameBytes) {
    const sameLog = wal.subarray(at + 8, at + 16).equals(wal.subarray(16, 24));
    if (sameLog && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}
