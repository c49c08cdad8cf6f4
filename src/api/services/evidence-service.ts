import type { MessageInitShape } from '@bufbuild/protobuf';
import { type EvidenceLinkSchema, EvidenceService } from '../../../gen/artseal/v1/evidence_pb.ts';
import { ProvenanceRecord_Event, ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { filingNotFound, retentionYears } from '../../domain/filing.ts';
import { checkDisclose, readDisclose } from '../../domain/filing-record.ts';
import { transfersMax } from '../../domain/provenance.ts';
import { checkRange } from '../../domain/violation.ts';
import { linkLifeS } from '../../keys/link-tokens.ts';
import { mintLinkId } from '../../keys/mint.ts';
import type { StoredLink } from '../../store/evidence-commands.ts';
import type { Execute } from '../../store/store.ts';
import { actorOf, type Implementation, implement, ownerScope } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { listing } from './paging.ts';

/** The sequences of a record: the filing itself and its transfers. */
const sequences = { min: 1, max: 1 + transfersMax } as const;

/**
 * The operations of EvidenceService. A platform reads evidence of its own filings, an internal system of all. A link is public, so
 * creating one needs a scope of its own.
 */
export function createEvidenceService({
  bundles,
  certificates,
  linkTokens,
  linkPath,
  clock,
  businessNowS,
  timestampS,
  paging,
}: ServiceDependencies): Implementation {
  return implement(EvidenceService, 'link', {
    getEvidence: {
      check: ({ sequence = 1, disclose }) => [
        ...checkRange('sequence', sequence, sequences),
        ...checkDisclose(disclose),
      ],
      run: async ({ filingNo, sequence = 1, disclose }, { principal, execute, pause }) => {
        const named = { filingNo, sequence, owner: ownerScope(principal) };
        return {
          bundle: await bundles.bundleOf(named, execute, { disclose: readDisclose(disclose), pause }),
        };
      },
    },
    getCertificate: {
      check: ({ disclose }) => checkDisclose(disclose),
      run: async ({ filingNo, disclose }, { principal, execute, pause }) => {
        const named = { filingNo, sequence: 1, owner: ownerScope(principal) };
        const bundle = await bundles.bundleOf(named, execute, { disclose: readDisclose(disclose), pause });
        const { callerId } = principal;
        const data = await pause(() => certificates.certificateOf(bundle, callerId, clock.nowMs()));
        return { certificate: { contentType: 'application/pdf', data } };
      },
    },
    createEvidenceLink: {
      check: ({ sequence = 1, disclose, expiresInSeconds = linkLifeS.default }) => [
        ...checkRange('sequence', sequence, sequences),
        ...checkDisclose(disclose),
        ...checkRange('expiresInSeconds', expiresInSeconds, linkLifeS),
      ],
      run: async ({ filingNo, sequence = 1, disclose, expiresInSeconds = linkLifeS.default }, call) => {
        const named = { filingNo, sequence, owner: ownerScope(call.principal) };
        const by = actorOf(call, clock);
        const { callerId } = call.principal;
        const [linkId, expiresAtS] = [mintLinkId(), businessNowS() + expiresInSeconds];
        const path = `${linkPath}${linkTokens.seal({ ...named, linkId }, expiresAtS)}`;
        const link = { linkId, path, expiresAt: timestampS(expiresAtS) };
        const share = { kind: 'ShareRecord', ...named, by, callerId, link, expiresAtS } as const;
        return await call.execute({ ...share, disclose });
      },
    },
    listEvidenceLinks: listing(paging, {
      find: ({ filingNo }, page, { execute, principal }) => {
        const owner = ownerScope(principal);
        return execute({ kind: 'ListLinks', filingNo, owner, nowS: businessNowS(), page });
      },
      respond: ({ items }) => ({ links: items.map((link) => linkMessage(link, timestampS)) }),
    }),
    revokeEvidenceLink: {
      run: async ({ filingNo, linkId }, call) => {
        const named = { filingNo, linkId, owner: ownerScope(call.principal) };
        await call.execute({ kind: 'RevokeLink', by: actorOf(call, clock), ...named });
        return {};
      },
    },
  });
}

/** A link without its token. */
export function linkMessage(
  { linkId, sequence, createdAtS, expiresAtS, revokedAtS, disclose }: StoredLink,
  timestampS: ServiceDependencies['timestampS'],
): MessageInitShape<typeof EvidenceLinkSchema> {
  return {
    ...{ linkId, sequence, createdAt: timestampS(createdAtS), expiresAt: timestampS(expiresAtS) },
    ...(revokedAtS !== null && { revokedAt: timestampS(revokedAtS) }),
    ...(disclose !== null && { disclose }),
  };
}

/**
 * Opens links to evidence: returns the JSON of the bundle and a file name; undefined for an invalid token. Throws what
 * `bundleOf` throws. `execute` rejects if too many reads are running.
 */
export function createSharedEvidence(
  { bundles, linkTokens, businessNowS }: Pick<ServiceDependencies, 'bundles' | 'linkTokens' | 'businessNowS'>,
  execute: Execute,
) {
  return {
    open: async (token: string): Promise<{ readonly json: string; readonly file: string } | undefined> => {
      const shared = linkTokens.open(token, businessNowS());
      if (shared === undefined) return undefined;
      const { filingNo, sequence, linkId } = shared;
      const link = await execute({ kind: 'FindLink', linkId });
      if (link === undefined || link.revokedAtS !== null) return undefined;
      // The creator of the link was allowed to see the record. Its status now does not matter.
      const named = { filingNo, sequence, owner: undefined };
      const bundle = await bundles.bundleOf(named, execute, {
        disclose: readDisclose(link.disclose ?? undefined),
      });
      return { json: JSON.stringify(bundle), file: `artseal-evidence-${filingNo}-${sequence}.json` };
    },
  };
}

/** The operations of ProvenanceService. Every caller may read the records of every filing. */
export function createProvenanceService(): Implementation {
  return implement(ProvenanceService, 'read', {
    getProvenance: {
      run: async ({ filingNo }, call) => {
        const provenance = await call.execute({ kind: 'GetProvenance', filingNo });
        if (provenance === undefined) throw filingNotFound();
        const records = provenance.records.map(({ event, at }) => ({
          event: ProvenanceRecord_Event[event],
          at,
        }));
        return { filingNo, author: provenance.author, records, retentionYears };
      },
    },
  });
}
