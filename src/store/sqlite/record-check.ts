import type { InferSelectModel } from 'drizzle-orm';
import { evidenceHash } from '../../domain/filing.ts';
import { commitmentTo, recordLeafData, timeOfLeaf } from '../../domain/leaf.ts';
import { leafHash } from '../../domain/merkle.ts';
import { type LaterRecord, recordHash } from '../../domain/provenance.ts';
import type { Incidents } from './incidents.ts';
import type { Leaves } from './leaves.ts';
import type { filing, provenanceRecord } from './schema.ts';

type FilingRow = InferSelectModel<typeof filing>;
type LaterRow = LaterRecord & Pick<InferSelectModel<typeof provenanceRecord>, 'salt' | 'leafIndex'>;

/**
 * Holds records against what was recorded whenever they are read for somebody. Throws an error that names the record, of which
 * nothing is told then, and counts it.
 */
export interface RecordCheck {
  /** A filing that is not erased: against its evidence hash, and that against the hash of its leaf in the tree. */
  filing<Row extends FilingRow>(row: Row): Row;
  /** A record of such a filing behind it, against its leaf. */
  later<Row extends LaterRow>(row: Row): Row;
}

export function createRecordCheck(leaves: Leaves, incidents: Incidents): RecordCheck {
  /** Whether that is the leaf at an index. */
  function isLeaf(data: string, index: number | null): boolean {
    const hash = index === null ? undefined : leaves.findHash(index);
    return hash !== undefined && Buffer.compare(hash, leafHash(data)) === 0;
  }

  function damaged(filingNo: string, what: string): Error {
    incidents.count('damagedRecords');
    return new Error(
      `${filingNo} is not what was recorded: ${what}. It is told to nobody: see "A record was changed" in docs/operations.md.`,
    );
  }

  return {
    filing: (row) => {
      const { filingNo: number, hash, salt, leafIndex, filedAtS: timeS } = row;
      if (evidenceHash(row) !== hash) throw damaged(number, 'its evidence hash is of another record');
      const commitment = salt === null ? '' : commitmentTo(hash, salt);
      if (!isLeaf(recordLeafData({ kind: 'FILING', number, sequence: 1, timeS, commitment }), leafIndex))
        throw damaged(number, 'its leaf in the evidence log is of another record');
      return row;
    },
    later: (row) => {
      const { filingNo: number, sequence, event: kind, at, salt, leafIndex } = row;
      const commitment =
        salt === null ? '' : commitmentTo(recordHash({ filingNo: number, sequence, event: kind, at }), salt);
      const [leaf] = leafIndex === null ? [] : leaves.dataFrom(leafIndex, 1);
      // Its leaf may be later than the record: only it tells.
      const timeS = leaf === undefined ? 0 : timeOfLeaf(leaf);
      if (leaf !== recordLeafData({ kind, number, sequence, timeS, commitment }))
        throw damaged(number, `the leaf of its record ${sequence} in the evidence log is of another one`);
      return row;
    },
  };
}
