import { and, desc, eq, getTableColumns, gt, inArray, lte } from 'drizzle-orm';
import { aheadMaxS } from '../../domain/clock.ts';
import { filingErased, recordNotFound } from '../../domain/filing.ts';
import { requireHideable } from '../../domain/filing-record.ts';
import {
  completedBy,
  consistencyPath,
  inclusionPath,
  type LeafRange,
  rootOf,
  subtreesOf,
} from '../../domain/merkle.ts';
import { fieldError } from '../../domain/violation.ts';
import { RecordDamaged } from '../engine/failure.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import type { LogReads } from '../engine/log-index.ts';
import { newestFirst, pageOf } from '../engine/paging.ts';
import type { Log } from '../engine/parts.ts';
import { caller, deployment, evidenceLink, filing, logEvent, provenanceRecord } from '../engine/schema.ts';
import { type Database, named, prepare } from '../engine/statement.ts';
import { storedFilingColumns } from '../engine/stored-filing.ts';
import type { VerifiedTree } from '../engine/verified-tree.ts';
import type {
  EvidenceCommands,
  LogClock,
  LoggedRecord,
  RecordName,
  StoredLink,
} from '../evidence-commands.ts';
import type { ReadTree } from '../store.ts';
import type { Parts } from './parts.ts';

/** The hash of a range of leaves. */
const hashIn = (tree: VerifiedTree) => (range: LeafRange) => rootOf(subtreesOf(range).map(tree.hashOf));

function createTreeHandlers(read: Log['read']): Handlers<'GetTree' | 'GetRoot'> {
  const rootAt = (size: number, { tree }: LogReads) => hashIn(tree)({ start: 0, end: size });
  const storedRootAt = (size: number, { leaves }: LogReads) =>
    rootOf(subtreesOf({ start: 0, end: size }).flatMap((subtree) => leaves.findHashes(subtree, 1)));
  return {
    GetTree: reads(() =>
      read((log) => {
        const size = loadedSize(log.tree);
        return { size, root: rootAt(size, log) };
      }),
    ),
    GetRoot: reads(({ size }) =>
      read((log) =>
        size > loadedSize(log.tree)
          ? undefined
          : { root: rootAt(size, log), stored: storedRootAt(size, log) },
      ),
    ),
  };
}

/** The size of the tree, which is read before. */
function loadedSize(tree: VerifiedTree): number {
  tree.load();
  return tree.size();
}

/** Reads the tree of a log without a store. */
export function createTreeReads(read: Log['read']): ReadTree {
  const handlers = createTreeHandlers(read);
  return async (command) => handlers[command.kind].run(command);
}

/** Handlers of the evidence log. */
export function createEvidenceHandlers(parts: Parts): Handlers<keyof EvidenceCommands> {
  const { database, log, recordAudit, check } = parts;
  const clock = createLogClock(parts);
  const findRecord = createRecordReads(database, check);

  /** Throws FILING_NOT_FOUND for a record that does not exist or is erased. */
  async function requireRecord(named: RecordName): Promise<NonNullable<LoggedRecord['content']>> {
    const found = await findRecord(named);
    if (found === undefined) throw recordNotFound(named.sequence);
    if (found.content === undefined) throw filingErased();
    return found.content;
  }

  return {
    ...createTreeHandlers(log.read),
    ...createIndexHandlers(parts),
    ...createProofHandlers(parts),
    FindRecord: reads(findRecord),
    ...createLinkHandlers(parts, requireRecord),
    ReadLogClock: reads(clock),
    AcceptClock: writes(async ({ by }) => {
      const before = { ...(await clock()), acceptedS: by.atS };
      if (before.newestS === by.atS && before.accepted?.timeS === by.atS) return before;
      await log.appendLogEvent('CLOCK_ACCEPTED', by.atS, { timeS: by.atS });
      await recordAudit(by, 'clock accept', 'clock', {
        before: before.newestS === undefined ? undefined : { timeS: before.newestS },
        after: { timeS: by.atS },
      });
      return before;
    }),
    AdvanceClock: createAdvance(parts),
  };
}

/** The handler that advances the business clock. */
const createAdvance = ({ database, clock, recordAudit }: Parts): Handlers['AdvanceClock'] =>
  writes(async ({ by, seconds }) => {
    const before = await clock.aheadS();
    const aheadS = before + seconds;
    if (aheadS > aheadMaxS)
      throw fieldError(
        'VALIDATION_FAILED',
        'seconds',
        `must be at most ${aheadMaxS - before}: the clock of a sandbox can be ${aheadMaxS} seconds ahead, and is ${before} ahead`,
      );
    await database.update(deployment).set({ clockAheadS: aheadS }).run();
    await recordAudit(by, 'sandbox advance', 'clock', { before: { aheadS: before }, after: { aheadS } });
    return aheadS;
  });

/** Handlers that compare leaves with the tree and index them. */
function createIndexHandlers({ log }: Parts): Handlers<'VerifyLog' | 'SaveLogIndex'> {
  return {
    VerifyLog: reads(async ({ leaves: max, saved }) => {
      // The end is found first: a scan that is repeated continues where it stopped.
      const end = await log.read(({ tree, index }) => {
        tree.load();
        if (saved !== undefined) index.load(saved);
        return index.scanned() + max;
      });
      return log.read(({ tree, index }) => {
        index.scan(end - index.scanned());
        return { verified: index.scanned(), size: tree.size(), faults: index.faults() };
      });
    }),
    SaveLogIndex: reads(() => log.read(({ index }) => ({ size: index.scanned(), saved: index.save() }))),
  };
}

/** Handlers that read leaves and hashes of the tree. */
function createProofHandlers({
  log,
  incidents,
}: Parts): Handlers<'ReadSubtrees' | 'ReadLeaves' | 'ProveInclusion' | 'ProveConsistency'> {
  /** The data of leaves that are in the tree. */
  function leavesFrom({ tree, leaves }: LogReads, from: number, width: number): readonly string[] {
    const data = leaves.dataFrom(from, width);
    const wrong = Array.from({ length: width }, (_, nth) => from + nth).find(
      (at) => !tree.hasLeaf(at, data[at - from] ?? ''),
    );
    if (wrong === undefined) return data;
    incidents.count('damagedRecords');
    throw new RecordDamaged(`Leaf ${wrong} of the evidence log is not what was recorded.`);
  }

  return {
    ReadSubtrees: reads(({ level, place, width }) =>
      log.read(({ tree }) => {
        const last = completedBy({ level, place: place + width - 1 });
        if (last >= loadedSize(tree)) return undefined;
        return Buffer.concat(
          Array.from({ length: width }, (_, nth) => tree.hashOf({ level, place: place + nth })),
        );
      }),
    ),
    ReadLeaves: reads(({ index: from, width }) =>
      log.read((found) =>
        from + width <= loadedSize(found.tree) ? leavesFrom(found, from, width) : undefined,
      ),
    ),
    ProveInclusion: reads(({ index: at, size: of }) =>
      log.read((found) => {
        const { tree } = found;
        if (of > loadedSize(tree) || at >= of) return undefined;
        const [leaf = ''] = leavesFrom(found, at, 1);
        return { leaf, path: inclusionPath(at, of).map(hashIn(tree)) };
      }),
    ),
    ProveConsistency: reads(({ from, to }) =>
      log.read(({ tree }) =>
        to > loadedSize(tree) || from > to ? undefined : consistencyPath(from, to).map(hashIn(tree)),
      ),
    ),
  };
}

/** Reads the times that the log knows. */
function createLogClock({ database, log, clock }: Parts): () => Promise<LogClock> {
  const { selectAccepted } = prepare(database, {
    selectAccepted: database
      .select(named({ sequence: logEvent.sequence, timeS: logEvent.timeS }))
      .from(logEvent)
      .where(eq(logEvent.kind, 'CLOCK_ACCEPTED'))
      .orderBy(desc(logEvent.sequence))
      .limit(1),
  });
  return async () => ({
    newestS: await log.newestS(),
    datedS: await clock.read(),
    accepted: await selectAccepted.get(),
    aheadS: await clock.aheadS(),
  });
}

/** Reads records, and compares them with the log. */
function createRecordReads(database: Database, check: Parts['check']) {
  async function findFiling(filingNo: string, owner: number | undefined): Promise<LoggedRecord | undefined> {
    const row = await database
      .select(storedFilingColumns)
      .from(filing)
      .innerJoin(caller, eq(caller.id, filing.callerId))
      .where(eq(filing.filingNo, filingNo))
      .get();
    if (row === undefined) await check.absence(filingNo);
    if (row === undefined || (owner !== undefined && row.callerId !== owner)) return undefined;
    const { salt, leafIndex, erasedAtS, id, callerId, filedAtS, previousId, ...recorded } = row;
    if (erasedAtS === null) await check.filing(row);
    else await check.erasure(row);
    return { content: salt === null ? undefined : { kind: 'FILING', filing: recorded, salt }, leafIndex };
  }

  async function findTransfer(filingNo: string, sequence: number): Promise<LoggedRecord | undefined> {
    const rows = await database
      .select()
      .from(provenanceRecord)
      .where(eq(provenanceRecord.filingNo, filingNo))
      .all();
    await check.transferCount(filingNo, rows.length);
    const row = rows.find(({ position }) => position === sequence);
    if (row === undefined) return undefined;
    const { event, at, salt, leafIndex, recordedAtS } = row;
    const record = { filingNo, sequence, event, at };
    if (salt === null) await check.erasure({ filingNo, leafIndex });
    else await check.transfer({ ...record, salt, leafIndex, recordedAtS });
    return { content: salt === null ? undefined : { kind: event, record, salt }, leafIndex };
  }

  return async ({ filingNo, sequence, owner }: RecordName): Promise<LoggedRecord | undefined> => {
    const found = await findFiling(filingNo, owner);
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
  requireRecord: (named: RecordName) => Promise<NonNullable<LoggedRecord['content']>>,
): Handlers<'ShareRecord' | 'FindLink' | 'ListLinks' | 'RevokeLink'> {
  const links = () => database.select(linkColumns).from(evidenceLink).$dynamic();

  async function sweep(nowS: number): Promise<void> {
    const expired = database
      .select({ id: evidenceLink.id })
      .from(evidenceLink)
      .where(lte(evidenceLink.expiresAtS, await clock.notAfter(nowS)))
      .orderBy(evidenceLink.expiresAtS)
      .limit(sweptPerLink);
    await database.delete(evidenceLink).where(inArray(evidenceLink.id, expired)).run();
  }

  return {
    ShareRecord: writes(async ({ by, link, callerId, expiresAtS, disclose, ...named }) => {
      const content = await requireRecord(named);
      if (disclose !== undefined) requireHideable(content.kind === 'FILING' ? content.filing : undefined);
      await sweep(by.atS + (await clock.aheadS()));
      const { linkId } = link;
      const { filingNo, sequence } = named;
      await database
        .insert(evidenceLink)
        .values({ linkId, filingNo, sequence, callerId, createdAtS: by.atS, expiresAtS, disclose })
        .run();
      const shared = { filingNo, sequence, expiresAtS, ...(disclose !== undefined && { disclose }) };
      await recordAudit(by, 'evidence link', linkId, { after: shared });
      return link;
    }),
    FindLink: reads(async ({ linkId }) => {
      const row = await links().where(eq(evidenceLink.linkId, linkId)).get();
      return row && toLink(row);
    }),
    ListLinks: reads(async ({ filingNo, owner, nowS, page }) => {
      await requireRecord({ filingNo, sequence: 1, owner });
      const isListed = and(eq(evidenceLink.filingNo, filingNo), gt(evidenceLink.expiresAtS, nowS));
      return pageOf(await newestFirst(links(), evidenceLink.id, page, isListed), page, toLink);
    }),
    RevokeLink: writes(async ({ by, linkId, filingNo, owner }) => {
      const row = await links()
        .innerJoin(filing, eq(filing.filingNo, evidenceLink.filingNo))
        .where(
          and(
            eq(evidenceLink.linkId, linkId),
            filingNo === undefined ? undefined : eq(evidenceLink.filingNo, filingNo),
            owner === undefined ? undefined : eq(filing.callerId, owner),
          ),
        )
        .get();
      if (row === undefined) throw fieldError('LINK_NOT_FOUND', 'linkId', 'names no link.');
      const before = toLink(row);
      if (before.revokedAtS !== null) return before;
      const revokedAtS = by.atS;
      await database.update(evidenceLink).set({ revokedAtS }).where(eq(evidenceLink.id, row.id)).run();
      await recordAudit(by, 'evidence revoke-link', linkId, {
        before: auditedLink(before),
        after: { ...auditedLink(before), revokedAtS },
      });
      return { ...before, revokedAtS };
    }),
  };
}

/** A link as the audit log shows it: without its token. */
const auditedLink = ({ filingNo, sequence, expiresAtS }: StoredLink) => ({ filingNo, sequence, expiresAtS });
