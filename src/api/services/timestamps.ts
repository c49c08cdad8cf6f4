/** RFC 3339, whole seconds, UTC, of Unix seconds. */
export function utc(atS: number): string {
  return new Date(atS * 1000).toISOString().replace('.000Z', '+00:00');
}
