import type { IncomingMessage } from 'node:http';

/** What a header that was not sent has. */
const none: readonly string[] = [];

/** The values of a header, by its name in lower case, as often as it was sent. */
export function sentHeader({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  let values = none;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] ?? '';
    if (sent.length !== name.length || sent.toLowerCase() !== name) continue;
    const value = rawHeaders[at + 1] ?? '';
    // Almost always the first: an array that grows takes room for many.
    values = values === none ? [value] : [...values, value];
  }
  return values;
}
