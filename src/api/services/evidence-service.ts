import { EvidenceService } from '../../../gen/artseal/v1/evidence_pb.ts';
import type { Clock } from '../../domain/clock.ts';
import { transfersMax } from '../../domain/provenance.ts';
import type { Violation } from '../../domain/violation.ts';
import type { Bundles } from '../../evidence/log/bundle.ts';
import { type LinkTokens, linkLifeS } from '../../keys/link-tokens.ts';
import { mintLinkId } from '../../keys/mint.ts';
import type { StoredLink } from '../../store/evidence-commands.ts';
import { type Implementation, implement, operation, parsed } from '../operation.ts';
import { ownerScope, sharerOf } from '../principal.ts';
import { listing, type Paging } from './paging.ts';

/** What the operations on evidence need. */
export interface EvidenceDependencies {
  readonly bundles: Bundles;
  readonly linkTokens: LinkTokens;
  /** The path of links on the public listener, before the token. */
  readonly linkPath: string;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
  readonly paging: Paging;
}

/** The largest sequence of a record: the filing itself and its transfers. */
const sequenceMax = 1 + transfersMax;

/**
 * The operations of EvidenceService. A platform reads evidence of its own filings, an internal system of all. A link is public, so
 * creating one needs a scope of its own.
 */
export function createEvidenceService({
  bundles,
  linkTokens,
  linkPath,
  clock,
  timestamp,
  paging,
}: EvidenceDependencies): Implementation {
  const at = (atS: number) => timestamp(atS * 1000);
  const linkMessage = ({ linkId, sequence, createdAtS, expiresAtS, revokedAtS }: StoredLink) => ({
    ...{ linkId, sequence, createdAt: at(createdAtS), expiresAt: at(expiresAtS) },
    ...(revokedAtS !== null && { revokedAt: at(revokedAtS) }),
  });
  return implement(EvidenceService, 'link', {
    getEvidence: operation({
      parse: ({ filingNo, sequence = 1 }, principal) =>
        parsed(checkRange('sequence', sequence, 1, sequenceMax), () => {
          return { filingNo, sequence, owner: ownerScope(principal) };
        }),
      run: async (named, call) => ({ bundle: await bundles.bundleOf(named, call.execute, call.pause) }),
    }),
    createEvidenceLink: operation({
      parse: ({ filingNo, sequence = 1, expiresInSeconds = linkLifeS.default }, principal) => {
        const violations = [
          ...checkRange('sequence', sequence, 1, sequenceMax),
          ...checkRange('expiresInSeconds', expiresInSeconds, linkLifeS.min, linkLifeS.max),
        ];
        const named = { filingNo, sequence, owner: ownerScope(principal) };
        return parsed(violations, () => ({ named, expiresInSeconds }));
      },
      run: async ({ named, expiresInSeconds }, call) => {
        const by = sharerOf(call, clock);
        const { callerId } = call.principal;
        const [linkId, expiresAtS] = [mintLinkId(), by.atS + expiresInSeconds];
        const path = `${linkPath}${linkTokens.seal({ ...named, linkId }, expiresAtS)}`;
        const link = { linkId, path, expiresAt: timestamp(expiresAtS * 1000) };
        return await call.execute({ kind: 'ShareRecord', ...named, by, callerId, link, expiresAtS });
      },
    }),
    listEvidenceLinks: listing(paging, {
      find: ({ filingNo }, page, { execute, principal }) => {
        const [owner, nowS] = [ownerScope(principal), Math.floor(clock.nowMs() / 1000)];
        return execute({ kind: 'ListLinks', filingNo, owner, nowS, page });
      },
      respond: ({ items }) => ({ links: items.map(linkMessage) }),
    }),
    revokeEvidenceLink: operation({
      parse: ({ filingNo, linkId }, principal) =>
        parsed([], () => ({ filingNo, linkId, owner: ownerScope(principal) })),
      run: async (named, call) => {
        await call.execute({ kind: 'RevokeLink', by: sharerOf(call, clock), ...named });
        return {};
      },
    }),
  });
}

function checkRange(field: string, value: number, min: number, max: number): Violation[] {
  return value >= min && value <= max ? [] : [{ field, rule: `must be an integer from ${min} to ${max}` }];
}
