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

  return {
    ...{ log, leaves: rows.leaves },
    forHandlers: forHandlers(log, rows.leaves),
    /** Reads the leaves after those that this process knows, and are committed or about to be. */
    readNew: () => rows.readFrom(log.tree.size()),
    /**
     * Begins a transaction. The tables have so many leaves and log events; `added` are rows of leaves that other instances have
     * added. Throws RecordDamaged if the tables have fewer leaves than this process knows: the database was put back to an earlier
     * state.
     */
    begin: async (leafCount: number, eventCount: number, added: readonly LeafRow[]): Promise<void> => {
      newLeaves.length = newEvents.length = 0;
      rows.begin(leafCount, added);
      events = eventCount;
      if (!isLoaded || leafCount === log.tree.size()) return;
      if (leafCount < log.tree.size()) {
        incidents.count('damagedRecords');
        throw damagedTree(`it had ${log.tree.size()} leaves, and the database has ${leafCount}`);
      }
      await whenRead(log.readAgain);
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
