import { and, desc, eq, getTableColumns, gt, lte } from 'drizzle-orm';
import { filingErased, linkNotFound, recordNotFound } from '../../domain/filing.ts';
import {
  completedBy,
  consistencyPath,
  inclusionPath,
  type LeafRange,
  rootOf,
  subtreesOf,
} from '../../domain/merkle.ts';
import type {
  EvidenceCommands,
  LogClock,
  LoggedRecord,
  RecordName,
  StoredLink,
} from '../evidence-commands.ts';
import type { ReadTree } from '../store.ts';
import { RecordDamaged } from './failure.ts';
import { toFiling } from './filings.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { createLeaves, type Leaves } from './leaves.ts';
import { newestFirst, pageOf } from './paging.ts';
import type { Parts } from './parts.ts';
import type { RecordCheck } from './record-check.ts';
import { caller, evidenceLink, filing, logEvent, provenanceRecord } from './schema.ts';
import { type Database, named, prepare } from './statement.ts';
import { createVerifiedTree, type VerifiedTree } from './verified-tree.ts';

/** The hash of a range of leaves. */
const hashIn = (tree: VerifiedTree) => (range: LeafRange) => rootOf(subtreesOf(range).map(tree.hashOf));

function createTreeHandlers(tree: VerifiedTree, leaves: Leaves): Handlers<'GetTree' | 'GetRoot'> {
  const rootAt = (size: number) => hashIn(tree)({ start: 0, end: size });
  const storedRootAt = (size: number) =>
    rootOf(subtreesOf({ start: 0, end: size }).flatMap((subtree) => leaves.findHashes(subtree, 1)));
  return {
    GetTree: reads(() => {
      const size = loadedSize(tree);
      return { size, root: rootAt(size) };
    }),
    GetRoot: reads(({ size }) =>
      size > loadedSize(tree) ? undefined : { root: rootAt(size), stored: storedRootAt(size) },
    ),
  };
}

/** The size of the tree, which is read before. */
function loadedSize(tree: VerifiedTree): number {
  tree.load();
  return tree.size();
}

/** Reads the tree of a database without a store. */
export function createTreeReads(database: Database): ReadTree {
  const leaves = createLeaves(database);
  const handlers = createTreeHandlers(createVerifiedTree(leaves), leaves);
  return async (command) => handlers[command.kind].run(command);
}

/** Handlers of the evidence log. */
export function createEvidenceHandlers(parts: Parts): Handlers<keyof EvidenceCommands> {
  const { database, log, leaves, recordAudit, check, incidents } = parts;
  const { tree, index } = log;
  const size = () => loadedSize(tree);
  const hashOf = hashIn(tree);
  const clock = createLogClock(parts);
  const findRecord = createRecordReads(database, check);

  /** The data of leaves that are in the tree. */
  function leavesFrom(from: number, width: number): readonly string[] {
    const data = leaves.dataFrom(from, width);
    const wrong = Array.from({ length: width }, (_, nth) => from + nth).find(
      (at) => !tree.hasLeaf(at, data[at - from] ?? ''),
    );
    if (wrong === undefined) return data;
    incidents.count('damagedRecords');
    throw new RecordDamaged(`Leaf ${wrong} of the evidence log is not what was recorded.`);
  }

  /** Throws FILING_NOT_FOUND for a record that does not exist or is erased. */
  function requireRecord(named: RecordName): void {
    const found = findRecord(named);
    if (found === undefined) throw recordNotFound(named.sequence);
    if (found.content === undefined) throw filingErased();
  }

  return {
    ...createTreeHandlers(tree, leaves),
    VerifyLog: reads(({ leaves: max, saved }) => {
      tree.load();
      if (saved !== undefined) index.load(saved);
      index.scan(max);
      return { verified: index.scanned(), size: tree.size(), faults: index.faults() };
    }),
    SaveLogIndex: reads(() => ({ size: index.scanned(), saved: index.save() })),
    ReadSubtrees: reads(({ level, place, width }) => {
      const last = completedBy({ level, place: place + width - 1 });
      if (last >= size()) return undefined;
      return Buffer.concat(
        Array.from({ length: width }, (_, nth) => tree.hashOf({ level, place: place + nth })),
      );
    }),
    ReadLeaves: reads(({ index: from, width }) =>
      from + width <= size() ? leavesFrom(from, width) : undefined,
    ),
    ProveInclusion: reads(({ index: at, size: of }) => {
      if (of > size() || at >= of) return undefined;
      const [leaf = ''] = leavesFrom(at, 1);
      return { leaf, path: inclusionPath(at, of).map(hashOf) };
    }),
    ProveConsistency: reads(({ from, to }) =>
      to > size() || from > to ? undefined : consistencyPath(from, to).map(hashOf),
    ),
    FindRecord: reads(findRecord),
    ...createLinkHandlers(parts, requireRecord),
    ReadLogClock: reads(clock),
    AcceptClock: writes(({ by }) => {
      const before = { ...clock(), acceptedS: by.atS };
      if (before.newestS === by.atS && before.accepted?.timeS === by.atS) return before;
      log.appendLogEvent('CLOCK_ACCEPTED', by.atS, { timeS: by.atS });
      recordAudit(by, 'clock accept', 'clock', {
        before: before.newestS === undefined ? undefined : { timeS: before.newestS },
        after: { timeS: by.atS },
      });
      return before;
    }),
  };
}

/** Reads the times that the log knows. */
function createLogClock({ database, log, clock }: Parts): () => LogClock {
  const { selectAccepted } = prepare(database, {
    selectAccepted: database
      .select(named({ sequence: logEvent.sequence, timeS: logEvent.timeS }))
      .from(logEvent)
      .where(eq(logEvent.kind, 'CLOCK_ACCEPTED'))
      .orderBy(desc(logEvent.sequence))
      .limit(1),
  });
  return () => ({ newestS: log.newestS(), datedS: clock.read(), accepted: selectAccepted.get() });
}

/** Reads records, and compares them with the log. */
function createRecordReads(database: Database, check: RecordCheck) {
  function findFiling(filingNo: string, owner: number | undefined): LoggedRecord | undefined {
    const row = database
      .select()
      .from(filing)
      .innerJoin(caller, eq(caller.id, filing.callerId))
      .where(eq(filing.filingNo, filingNo))
      .get();
    if (row === undefined) check.absence(filingNo);
    if (row === undefined || (owner !== undefined && row.filing.callerId !== owner)) return undefined;
    const { salt, leafIndex, erasedAtS } = row.filing;
    if (erasedAtS === null) check.filing(row.filing);
    else check.erasure(row.filing);
    const shown = toFiling({ ...row.filing, caller: row.caller.name });
    return { content: salt === null ? undefined : { kind: 'FILING', filing: shown, salt }, leafIndex };
  }

  function findTransfer(filingNo: string, sequence: number): LoggedRecord | undefined {
    const rows = database
      .select()
      .from(provenanceRecord)
      .where(eq(provenanceRecord.filingNo, filingNo))
      .all();
    check.transferCount(filingNo, rows.length);
    const row = rows.find(({ position }) => position === sequence);
    if (row === undefined) return undefined;
    const { event, at, salt, leafIndex, recordedAtS } = row;
    const record = { filingNo, sequence, event, at };
    if (salt === null) check.erasure({ filingNo, leafIndex });
    else check.transfer({ ...record, salt, leafIndex, recordedAtS });
    return { content: salt === null ? undefined : { kind: event, record, salt }, leafIndex };
  }

  return ({ filingNo, sequence, owner }: RecordName): LoggedRecord | undefined => {
    const found = findFiling(filingNo, owner);
    return found === undefined || sequence === 1 ? found : findTransfer(filingNo, sequence);
  };
}

/** Expired links that are deleted with each new one: more than one, so that the table does not grow. */
const sweptPerLink = 2;

const { callerId: _, ...linkColumns } = getTableColumns(evidenceLink);

const toLink = ({ id: _, ...link }: StoredLink & { readonly id: number }): StoredLink => link;

/** Handlers of links to evidence. They are rare, so no statement is prepared. */
function createLinkHandlers(
  { database, recordAudit, clock }: Parts,
  requireRecord: (named: RecordName) => void,
): Handlers<'ShareRecord' | 'FindLink' | 'ListLinks' | 'RevokeLink'> {
  const links = () => database.select(linkColumns).from(evidenceLink).$dynamic();

  function sweep(nowS: number): void {
    database
      .delete(evidenceLink)
      .where(lte(evidenceLink.expiresAtS, clock.notAfter(nowS)))
      .orderBy(evidenceLink.expiresAtS)
      .limit(sweptPerLink)
      .run();
  }

  return {
    ShareRecord: writes(({ by, link, callerId, expiresAtS, ...named }) => {
      requireRecord(named);
      sweep(by.atS);
      const { linkId } = link;
      const { filingNo, sequence } = named;
      database
        .insert(evidenceLink)
        .values({ linkId, filingNo, sequence, callerId, createdAtS: by.atS, expiresAtS })
        .run();
      recordAudit(by, 'evidence link', linkId, { after: { filingNo, sequence, expiresAtS } });
      return link;
    }),
    FindLink: reads(({ linkId }) => {
      const row = links().where(eq(evidenceLink.linkId, linkId)).get();
      return row && toLink(row);
    }),
    ListLinks: reads(({ filingNo, owner, nowS, page }) => {
      requireRecord({ filingNo, sequence: 1, owner });
      const isListed = and(eq(evidenceLink.filingNo, filingNo), gt(evidenceLink.expiresAtS, nowS));
      return pageOf(newestFirst(links(), evidenceLink.id, page, isListed), page, toLink);
    }),
    RevokeLink: writes(({ by, linkId, filingNo, owner }) => {
      const row = links()
        .innerJoin(filing, eq(filing.filingNo, evidenceLink.filingNo))
        .where(
          and(
            eq(evidenceLink.linkId, linkId),
            filingNo === undefined ? undefined : eq(evidenceLink.filingNo, filingNo),
            owner === undefined ? undefined : eq(filing.callerId, owner),
          ),
        )
        .get();
      if (row === undefined) throw linkNotFound();
      const before = toLink(row);
      if (before.revokedAtS !== null) return before;
      const revokedAtS = by.atS;
      database.update(evidenceLink).set({ revokedAtS }).where(eq(evidenceLink.id, row.id)).run();
      recordAudit(by, 'evidence revoke-link', linkId, {
        before: auditedLink(before),
        after: { ...auditedLink(before), revokedAtS },
      });
      return { ...before, revokedAtS };
    }),
  };
}

/** A link as the audit log shows it: without its token. */
const auditedLink = ({ filingNo, sequence, expiresAtS }: StoredLink) => ({ filingNo, sequence, expiresAtS });
