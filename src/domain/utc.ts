/** A time in RFC 3339, in UTC and whole seconds: the form of logs and messages, which know no business time zone. */
export function utcTimestamp(atMs: number): string {
  return new Date(Math.floor(atMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
}
