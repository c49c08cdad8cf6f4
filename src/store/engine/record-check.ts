import type { InferSelectModel } from 'drizzle-orm';
import { evidenceHash } from '../../domain/filing.ts';
import { filingCommitment } from '../../domain/filing-record.ts';
import { commitmentTo, recordLeafData, timeOfLeaf } from '../../domain/leaf.ts';
import { type LaterRecord, recordHash } from '../../domain/provenance.ts';
import { type Incidents, RecordDamaged } from './failure.ts';
import type { LogReads } from './log-index.ts';
import type { provenanceRecord } from './schema.ts';
import type { FilingRow, StoredFiling } from './stored-filing.ts';

type LaterRow = LaterRecord &
  Pick<InferSelectModel<typeof provenanceRecord>, 'salt' | 'leafIndex' | 'recordedAtS'>;

/**
 * Compares stored records with the evidence log when they are read for a caller or added to. Throws RecordDamaged, which names the
 * filing, and counts it.
 */
export type RecordCheck = ReturnType<typeof createRecordCheck>;

export function createRecordCheck({ tree, index, leaves }: LogReads, incidents: Incidents) {
  /** Throws unless `isSo`. */
  function require(isSo: () => boolean, filingNo: string, what: string): void {
    if (isSo()) return;
    // Nothing may have read the tree before.
    tree.load();
    if (isSo()) return;
    incidents.count('damagedRecords');
    throw new RecordDamaged(
      `${filingNo} is not what was recorded: ${what}. Nothing of it is returned: see docs/operate/incidents/record-changed.md.`,
    );
  }

  /** Whether a log event says that the record of a leaf was erased, and the leaf was old enough. */
  function isErased(leafIndex: number): boolean {
    const before = index.erasedBefore(leafIndex);
    if (before === undefined) return false;
    const [leaf] = leaves.dataFrom(leafIndex, 1);
    return leaf !== undefined && tree.hasLeaf(leafIndex, leaf) && timeOfLeaf(leaf) <= before;
  }

  /** That a TRANSFER record has its leaf. */
  function requireTransfer({ filingNo, sequence, event, at, salt, leafIndex, ...row }: LaterRow): void {
    const hash = recordHash({ filingNo, sequence, event, at });
    const commitment = salt === null ? '' : commitmentTo(hash, salt);
    const leaf = { kind: event, number: filingNo, sequence, timeS: row.recordedAtS, commitment };
    const data = recordLeafData(leaf);
    const what = `the leaf of its record ${sequence} in the evidence log is of another one`;
    require(() => tree.hasLeaf(leafIndex, data), filingNo, what);
  }

  /** That a filing has as many TRANSFER records as were recorded. */
  function transferCount(filingNo: string, count: number): void {
    const what = `it has ${count} TRANSFER records, and the evidence log has ${index.transfersOf(filingNo)}`;
    require(() => index.transfersOf(filingNo) === count, filingNo, what);
  }

  /** That a filing which is not erased has its leaf in the verified tree. Its hash is not compared if it is not given. */
  function requireSource<Row extends StoredFiling>(row: Row, hash?: string): Row {
    const { filingNo: number, salt, leafIndex, filedAtS: timeS } = row;
    const commitment = salt === null ? '' : filingCommitment(row, salt, hash);
    const data = recordLeafData({ kind: 'FILING', number, sequence: 1, timeS, commitment });
    require(() => tree.hasLeaf(leafIndex, data), number, 'its leaf in the evidence log is of another record');
    return row;
  }

  return {
    /** That a filing which is not erased has its evidence hash, and the leaf of it in the verified tree. */
    filing: <Row extends StoredFiling>(row: Row): Row => {
      const { filingNo, hash } = row;
      require(() => evidenceHash(row) === hash, filingNo, 'its evidence hash is of another record');
      return requireSource(row, hash);
    },
    /** The same without the evidence hash, for a caller that does not get it. */
    source: <Row extends StoredFiling>(row: Row): Row => requireSource(row),
    /** That such a filing has all its TRANSFER records, each with its leaf. */
    transfers: <Row extends LaterRow>(filingNo: string, rows: readonly Row[]): readonly Row[] => {
      transferCount(filingNo, rows.length);
      for (const row of rows) requireTransfer(row);
      return rows;
    },
    transfer: requireTransfer,
    transferCount,
    /** That a filing which is not stored was never recorded. */
    absence: (filingNo: string): void =>
      require(() =>
        !index.hasFiling(filingNo), filingNo, 'the evidence log has it, and the database does not'),
    /** That no filing was recorded between two successive numbers of a list. */
    adjacency: (below: string, above: string): void => {
      const what = `the evidence log has filings between ${below} and ${above}, and the database does not`;
      require(() => index.filingsBetween(below, above) === 0, 'A list', what);
    },
    /** That a filing of a list has its caller. */
    listed: <Row>(row: Row | undefined): Row => {
      require(() => row !== undefined, 'A list', 'one of its filings has no caller');
      return row as Row;
    },
    /** That a record which is marked as erased may be: a log event names its leaf, which was old enough. */
    erasure: ({ filingNo, leafIndex }: Pick<FilingRow, 'filingNo' | 'leafIndex'>): void => {
      const what = 'it is marked as erased, and no log event allows that';
      require(() => isErased(leafIndex), filingNo, what);
    },
    /** That the last filing of a year, 0 without one, is the last one that was recorded. */
    lastFiling: (year: number, sequence: number): void => {
      const what = `the last filing of ${year} is ${sequence}, and the evidence log has ${index.lastOf(year)}`;
      require(() => index.lastOf(year) === sequence, `${year}`, what);
    },
  };
}
