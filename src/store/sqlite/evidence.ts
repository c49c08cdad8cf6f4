import { and, desc, eq } from 'drizzle-orm';
import { filingErased, recordNotFound } from '../../domain/filing.ts';
import {
  completedBy,
  consistencyPath,
  inclusionPath,
  type LeafRange,
  rootOf,
  subtreesOf,
} from '../../domain/merkle.ts';
import type { EvidenceCommands, LogClock, LoggedRecord, RecordName } from '../evidence-commands.ts';
import type { ReadTree } from '../store.ts';
import type { NoteAct } from './acts.ts';
import type { Database } from './database.ts';
import type { Dated } from './dated.ts';
import type { EvidenceLog } from './evidence-log.ts';
import { toFiling } from './filings.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { createLeaves, type Leaves } from './leaves.ts';
import type { RecordCheck } from './record-check.ts';
import { caller, filing, logAct, provenanceRecord } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** The hash of a range of leaves. */
const hashIn = (leaves: Leaves) => (range: LeafRange) => rootOf(subtreesOf(range).map(leaves.hashOf));

function createTreeHandlers(leaves: Leaves): Handlers<'GetTree' | 'GetRoot'> {
  const rootAt = (size: number) => hashIn(leaves)({ start: 0, end: size });
  return {
    GetTree: reads(() => {
      const size = leaves.size();
      return { size, root: rootAt(size) };
    }),
    GetRoot: reads(({ size }) => (size > leaves.size() ? undefined : rootAt(size))),
  };
}

/** Reads size and roots of the tree of a database that nobody here serves. */
export function createTreeReads(database: Database): ReadTree {
  const handlers = createTreeHandlers(createLeaves(database));
  return async (command) => handlers[command.kind].run(command);
}

/** Handlers of what is read of the evidence log. */
export function createEvidenceHandlers(
  database: Database,
  log: EvidenceLog,
  leaves: Leaves,
  dated: Dated,
  noteAct: NoteAct,
  check: RecordCheck,
): Handlers<keyof EvidenceCommands> {
  const { size } = leaves;
  const hashOf = hashIn(leaves);
  const selectAccepted = prepareRaw<{ sequence: number; time_s: number }>(
    database,
    database
      .select({ sequence: logAct.sequence, timeS: logAct.timeS })
      .from(logAct)
      .where(eq(logAct.kind, 'CLOCK_ACCEPTED'))
      .orderBy(desc(logAct.sequence))
      .limit(1),
  );
  const clock = (): LogClock => {
    const accepted = selectAccepted.get({});
    return {
      newestS: log.newestS(),
      datedS: dated.read(),
      accepted: accepted && { sequence: accepted.sequence, timeS: accepted.time_s },
    };
  };
  /** The filing itself. */
  function findFiling(filingNo: string, owner: number | undefined): LoggedRecord | undefined {
    const row = database
      .select()
      .from(filing)
      .innerJoin(caller, eq(caller.id, filing.callerId))
      .where(and(eq(filing.filingNo, filingNo), owner === undefined ? undefined : eq(filing.callerId, owner)))
      .get();
    if (row === undefined) return undefined;
    const { salt, leafIndex, erasedAtS } = row.filing;
    if (erasedAtS === null) check.filing(row.filing);
    const shown = toFiling({ ...row.filing, caller: row.caller.name });
    return {
      content: salt === null ? undefined : { kind: 'FILING', filing: shown, salt },
      leafIndex: requireIndex(leafIndex, filingNo),
    };
  }

  /** A record behind it. */
  function findLater(filingNo: string, sequence: number): LoggedRecord | undefined {
    const row = database
      .select()
      .from(provenanceRecord)
      .where(and(eq(provenanceRecord.filingNo, filingNo), eq(provenanceRecord.position, sequence)))
      .get();
    if (row === undefined) return undefined;
    const { event, at, salt, leafIndex } = row;
    const record = { filingNo, sequence, event, at };
    if (salt !== null) check.later({ ...record, salt, leafIndex });
    return {
      content: salt === null ? undefined : { kind: event, record, salt },
      leafIndex: requireIndex(leafIndex, filingNo),
    };
  }

  function findRecord({ filingNo, sequence, owner }: RecordName): LoggedRecord | undefined {
    const found = findFiling(filingNo, owner);
    return found === undefined || sequence === 1 ? found : findLater(filingNo, sequence);
  }

  return {
    ...createTreeHandlers(leaves),
    ReadSubtrees: reads(({ level, place, width }) => {
      const last = completedBy({ level, place: place + width - 1 });
      return last < size() ? leaves.hashesFrom({ level, place }, width) : undefined;
    }),
    ReadLeaves: reads(({ index, width }) =>
      index + width <= size() ? leaves.dataFrom(index, width) : undefined,
    ),
    ProveInclusion: reads(({ index, size: of }) => {
      if (of > size() || index >= of) return undefined;
      const [leaf] = leaves.dataFrom(index, 1);
      return leaf === undefined ? undefined : { leaf, path: inclusionPath(index, of).map(hashOf) };
    }),
    ProveConsistency: reads(({ from, to }) =>
      to > size() || from > to ? undefined : consistencyPath(from, to).map(hashOf),
    ),
    FindRecord: reads(findRecord),
    ShareRecord: reads(({ link, ...named }) => {
      const found = findRecord(named);
      if (found === undefined) throw recordNotFound(named.sequence);
      if (found.content === undefined) throw filingErased();
      return link;
    }),
    ReadLogClock: reads(clock),
    AcceptClock: writes(({ by }) => {
      const before = clock();
      if (before.newestS === by.atS && before.accepted?.timeS === by.atS) return before;
      log.appendAct('CLOCK_ACCEPTED', by.atS, { timeS: by.atS });
      noteAct(by, 'clock accept', 'clock', {
        before: before.newestS === undefined ? undefined : { timeS: before.newestS },
        after: { timeS: by.atS },
      });
      return before;
    }),
  };
}

function requireIndex(leafIndex: number | null, filingNo: string): number {
  if (leafIndex === null) throw new Error(`A record of ${filingNo} has no leaf in the evidence log.`);
  return leafIndex;
}
