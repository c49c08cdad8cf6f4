import type { Limits } from '../../api/limits.ts';

/**
 * The RateLimit-Policy and RateLimit headers (IETF draft-ietf-httpapi-ratelimit-headers): for each policy its quota q and
 * window w, the remaining calls r and the seconds t until it resets. A caller without quota has no monthly policy.
 */
export function rateLimitHeaders({ rate, quota }: Limits): Record<string, string> {
  const policy = `"qps";q=${rate.callsPerSecond};w=1`;
  const left = `"qps";r=${rate.remaining};t=${rate.resetS}`;
  if (quota.limit === undefined) return { 'RateLimit-Policy': policy, RateLimit: left };
  return {
    'RateLimit-Policy': `${policy}, "monthly";q=${quota.limit};w=${quota.monthS}`,
    RateLimit: `${left}, "monthly";r=${quota.remaining};t=${quota.resetS}`,
  };
}
