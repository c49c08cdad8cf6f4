import { EvidenceService } from '../../gen/artseal/v1/evidence_pb.ts';
import { type Implementation, implement, operation, parsed } from '../calls/operation.ts';
import { ownerScope } from '../calls/principal.ts';
import type { Clock } from '../domain/clock.ts';
import { transfersMax } from '../domain/provenance.ts';
import type { Violation } from '../domain/violation.ts';
import { type LinkTokens, linkLifeS } from '../keys/link-tokens.ts';
import type { Bundles } from '../tlog/bundle.ts';

/** What the operations on evidence need. */
export interface EvidenceDependencies {
  readonly bundles: Bundles;
  readonly linkTokens: LinkTokens;
  /** Where links lead to at the public door; a token follows. */
  readonly linkPath: string;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** RFC 3339 of Unix milliseconds, in the business time zone. */
  readonly timestamp: (atMs: number) => string;
}

/** The last place that a record of a filing can have: it is the filing itself, and its transfers. */
const sequenceMax = 1 + transfersMax;

/** The operations of EvidenceService. A platform has evidence of its own filings, an internal system of all of them. */
export function createEvidenceService({
  bundles,
  linkTokens,
  linkPath,
  clock,
  timestamp,
}: EvidenceDependencies): Implementation {
  return implement(EvidenceService, 'read', {
    getEvidence: operation({
      parse: ({ filingNo, sequence = 1 }, principal) =>
        parsed(checkRange('sequence', sequence, 1, sequenceMax), () => {
          return { filingNo, sequence, owner: ownerScope(principal) };
        }),
      run: async (named, call) => ({ bundle: await bundles.bundleOf(named, call.execute) }),
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
        const endsAtS = Math.floor(clock.nowMs() / 1000) + expiresInSeconds;
        const path = `${linkPath}${linkTokens.seal(named, endsAtS)}`;
        const link = { path, expiresAt: timestamp(endsAtS * 1000) };
        return await call.execute({ kind: 'ShareRecord', ...named, link });
      },
    }),
  });
}

function checkRange(field: string, value: number, min: number, max: number): Violation[] {
  return value >= min && value <= max ? [] : [{ field, rule: `must be an integer from ${min} to ${max}` }];
}
