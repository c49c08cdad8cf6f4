import type { IncomingMessage } from 'node:http';

const none: readonly string[] = [];

/** All values sent for a header; `name` is in lower case. Node's `headers` joins or drops repeated ones. */
export function sentHeader({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  let values = none;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] ?? '';
    if (sent.length !== name.length || sent.toLowerCase() !== name) continue;
    const value = rawHeaders[at + 1] ?? '';
    // Nearly always one value, and pushing to an array would reserve space for many.
    values = values === none ? [value] : [...values, value];
  }
  return values;
}
