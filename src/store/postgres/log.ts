import { createLog, type EvidenceLog } from '../engine/evidence-log.ts';
import type { Incidents } from '../engine/failure.ts';
import { type LeafRow, rowsOf } from '../engine/leaves.ts';
import type { Log } from '../engine/parts.ts';
import { damagedTree } from '../engine/verified-tree.ts';
import { insertRows } from './insert-rows.ts';
import { createLeafRows, type Queries } from './leaf-rows.ts';
import { whenRead } from './needed.ts';

/** The evidence log of a database. What is appended is sent with `flush`. */
export function createPostgresLog(queries: Queries, incidents: Incidents, isSandbox: boolean) {
  const rows = createLeafRows(queries);
  const newLeaves: LeafRow[] = [];
  const newEvents: object[] = [];
  let events = 0;
  let isLoaded = false;
  /** Whether the database may have been put back to an earlier state. */
  let isOtherSession = false;
  /** Whether a transaction that reads new leaves is open or has failed. */
  let isReadingAgain = false;
  const log = createLog(
    {
      leaves: rows.leaves,
      append: (size, stored) => {
        const added = [...rowsOf(size, stored)];
        newLeaves.push(...added);
        rows.add(added, size + stored.length);
      },
      events: () => events,
      // A text would become a JSON string in its column.
      insertEvent: ({ detail, ...event }) => void newEvents.push({ ...event, detail: JSON.parse(detail) }),
    },
    incidents,
    isSandbox,
  );

  function damaged(what: string): Error {
    incidents.count('damagedRecords');
    return damagedTree(what);
  }

  return {
    ...{ log, leaves: rows.leaves, damaged },
    forHandlers: forHandlers(log, rows.leaves),
    /** Call it when the session is another one, perhaps of a database server that took over and lacks commits. */
    joinedSession: (): void => {
      isOtherSession = true;
    },
    /** The first leaf that a transaction has to read, as this instance knows them once the COMMIT under way has ended. */
    firstUnread: (): number => Math.max(0, log.tree.size() - (isOtherSession ? 1 : 0)),
    /**
     * Begins a transaction. The tables have so many leaves and log events; `added` are rows of leaves that other instances have
     * added. Throws RecordDamaged if the tables lack the newest leaf that this instance knows: the database was put back to an
     * earlier state.
     */
    begin: async (leafCount: number, eventCount: number, added: readonly LeafRow[]): Promise<void> => {
      newLeaves.length = newEvents.length = 0;
      rows.begin(leafCount, added);
      events = eventCount;
      if (!isLoaded) return;
      const size = log.tree.size();
      if (leafCount < size) throw damaged(`it had ${size} leaves, and the database has ${leafCount}`);
      if (isOtherSession && size > 0) {
        // Each leaf has a salt, so a leaf that another instance has added in its place differs.
        const isThere = await whenRead(() => {
          const [newest] = rows.leaves.dataFrom(size - 1, 1);
          return newest !== undefined && log.tree.hasLeaf(size - 1, newest);
        });
        if (!isThere) throw damaged(`the database has another leaf ${size - 1}`);
      }
      isOtherSession = false;
      if (leafCount === size && !isReadingAgain) return;
      const isIndexed = log.index.scanned() === size;
      isReadingAgain = true;
      await whenRead(log.readAgain);
      isReadingAgain = false;
      if (isIndexed) await whenRead(log.indexAgain);
    },
    /** Reads the tree. */
    load: async (): Promise<void> => {
      await rows.readTiles();
      await whenRead(log.tree.load);
      isLoaded = true;
    },
    /** Sends what was written. */
    flush: (): readonly Promise<unknown>[] => {
      const sent = [
        ...insertRows(queries, 'log_leaf', newLeaves.splice(0)),
        ...insertRows(queries, 'log_event', newEvents.splice(0)),
      ];
      return sent;
    },
  };
}

/** The log as handlers use it. */
const forHandlers = (log: EvidenceLog, leaves: ReturnType<typeof createLeafRows>['leaves']): Log => ({
  appendRecord: async (record) => whenRead(() => log.appendRecord(record)),
  appendLogEvent: async (kind, atS, detail) => whenRead(() => log.appendLogEvent(kind, atS, detail)),
  newestS: async () => whenRead(log.newestS),
  read: async (work) => whenRead(() => work({ tree: log.tree, index: log.index, leaves })),
});
