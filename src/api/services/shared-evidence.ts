import type { Clock } from '../../domain/clock.ts';
import type { Bundles } from '../../evidence/log/bundle.ts';
import type { LinkTokens } from '../../keys/link-tokens.ts';
import type { Execute } from '../../store/store.ts';

/** What opening links needs. */
export interface SharedEvidenceDependencies {
  readonly bundles: Bundles;
  readonly linkTokens: LinkTokens;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Rejects if too many reads are running. */
  readonly execute: Execute;
}

/**
 * Opens links to evidence: returns the JSON of the bundle and a file name; undefined for an invalid token. Throws what
 * `bundleOf` throws.
 */
export function createSharedEvidence({ bundles, linkTokens, clock, execute }: SharedEvidenceDependencies) {
  return {
    open: async (token: string): Promise<{ readonly json: string; readonly file: string } | undefined> => {
      const shared = linkTokens.open(token, Math.floor(clock.nowMs() / 1000));
      if (shared === undefined) return undefined;
      const { filingNo, sequence, linkId } = shared;
      const link = await execute({ kind: 'FindLink', linkId });
      if (link === undefined || link.revokedAtS !== null) return undefined;
      // The creator of the link was allowed to see the record. Its status now does not matter.
      const bundle = await bundles.bundleOf({ filingNo, sequence, owner: undefined }, execute);
      return { json: JSON.stringify(bundle), file: `artseal-evidence-${filingNo}-${sequence}.json` };
    },
  };
}
