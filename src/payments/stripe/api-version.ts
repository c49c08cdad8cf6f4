/**
 * The version of Stripe's API that this code is written for: every request names it, and notifications have to be of its
 * shape. It is the one that the library is made for.
 */
export const apiVersion = '2026-10-28.endive';

/** The release that a version belongs to; the versions of one release differ only by what was added. */
export function releaseOf(version: string): string {
  return version.slice(version.indexOf('.') + 1);
}
