import type { Clock } from '../../domain/clock.ts';
import type { Bundles } from '../../evidence/log/bundle.ts';
import type { LinkTokens } from '../../keys/link-tokens.ts';
import type { Execute } from '../../store/store.ts';

/** What links to evidence give. */
export interface SharedEvidenceDependencies {
  readonly bundles: Bundles;
  readonly linkTokens: LinkTokens;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Refuses where too many read at a time. */
  readonly execute: Execute;
}

/**
 * Opens links to evidence: the JSON of the bundle and a name for its file; undefined for a token that opens nothing. Throws
 * what `bundleOf` throws.
 */
export function createSharedEvidence({ bundles, linkTokens, clock, execute }: SharedEvidenceDependencies) {
  return {
    open: async (token: string): Promise<{ readonly json: string; readonly file: string } | undefined> => {
      const shared = linkTokens.open(token, Math.floor(clock.nowMs() / 1000));
      if (shared === undefined) return undefined;
      const { filingNo, sequence, linkId } = shared;
      // A link that was made before links had ids is good until it expires.
      const link = linkId === undefined ? undefined : await execute({ kind: 'FindLink', linkId });
      if (linkId !== undefined && (link === undefined || link.revokedAtS !== null)) return undefined;
      // Whoever made the link might see the record; what became of that platform since does not matter.
      const bundle = await bundles.bundleOf({ filingNo, sequence, owner: undefined }, execute);
      return { json: JSON.stringify(bundle), file: `artseal-evidence-${filingNo}-${sequence}.json` };
    },
  };
}
