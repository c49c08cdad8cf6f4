import type { Limits } from '../calls/limits.ts';

/**
 * The RateLimit-Policy and RateLimit headers (IETF draft-ietf-httpapi-ratelimit-headers): per policy its quota
 * q and window w, the remaining r and the seconds t until it is whole again. Unlimited calls have no monthly policy.
 */
export function rateLimitHeaders({ rate, quota }: Limits): Record<string, string> {
  const policies = [`"qps";q=${rate.callsPerSecond};w=1`];
  const standings = [`"qps";r=${rate.remaining};t=${rate.resetS}`];
  if (quota.limit !== undefined) {
    policies.push(`"monthly";q=${quota.limit};w=${quota.monthS}`);
    standings.push(`"monthly";r=${quota.remaining};t=${quota.resetS}`);
  }
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: standings.join(', ') };
}
