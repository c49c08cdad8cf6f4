import { and, desc, eq, gt, lt, lte } from 'drizzle-orm';
import { linkNotFound } from '../../domain/filing.ts';
import type { EvidenceCommands, StoredLink } from '../evidence-commands.ts';
import type { RecordAudit } from './audit-log.ts';
import type { Database } from './connection.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { pageOf, rowsFor } from './paging.ts';
import { evidenceLink, filing } from './schema.ts';

/** Expired links that are deleted with each new one: more than one, so that the table does not grow. */
const sweptPerLink = 2;

const linkColumns = {
  id: evidenceLink.id,
  linkId: evidenceLink.linkId,
  filingNo: evidenceLink.filingNo,
  sequence: evidenceLink.sequence,
  createdAtS: evidenceLink.createdAtS,
  expiresAtS: evidenceLink.expiresAtS,
  revokedAtS: evidenceLink.revokedAtS,
};

const toLink = ({ id: _, ...link }: StoredLink & { readonly id: number }): StoredLink => link;

/** What the handlers of links need. */
export interface LinkDependencies {
  readonly recordAudit: RecordAudit;
  /** Throws FILING_NOT_FOUND for a record that does not exist or is erased. */
  readonly requireRecord: (named: EvidenceCommands['FindRecord']['takes']) => void;
  /** As `TrustedClock.notAfter`. */
  readonly notAfter: (nowS: number) => number;
}

/** Handlers of links to evidence. They are rare, so no statement is prepared. */
export function createLinkHandlers(
  database: Database,
  { recordAudit, requireRecord, notAfter }: LinkDependencies,
): Handlers<'ShareRecord' | 'FindLink' | 'ListLinks' | 'RevokeLink'> {
  const links = () => database.select(linkColumns).from(evidenceLink).$dynamic();

  function sweep(nowS: number): void {
    database
      .delete(evidenceLink)
      .where(lte(evidenceLink.expiresAtS, notAfter(nowS)))
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
      const isListed = and(
        eq(evidenceLink.filingNo, filingNo),
        gt(evidenceLink.expiresAtS, nowS),
        page.from === undefined ? undefined : lt(evidenceLink.id, page.from),
      );
      return pageOf(
        links().where(isListed).orderBy(desc(evidenceLink.id)).limit(rowsFor(page)).all(),
        page,
        toLink,
      );
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
