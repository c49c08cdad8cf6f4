/** The version of Stripe's API that each request names and notifications must have. The library is made for it. */
export const apiVersion = '2026-10-28.endive';

/** Returns the release of a version. Versions of one release only add to each other. */
export function releaseOf(version: string): string {
  return version.slice(version.indexOf('.') + 1);
}
