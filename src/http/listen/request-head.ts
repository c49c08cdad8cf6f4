import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** The largest request body that a listener reads, in bytes. */
export const bodyBytesMax = 65_536;

/**
 * The fault in how an HTTP/1 request states the end of its body; undefined if there is none. Request smuggling: a proxy may see
 * another end if there is more than a single `chunked`, or any with HTTP/1.0, and take the following bytes for a request of
 * another client (RFC 9112, 6.1 and 11.2). Close the connection of such a request.
 */
export function framingFault({
  httpVersion,
  headers,
}: Pick<IncomingMessage, 'httpVersion' | 'headers'>): string | undefined {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return undefined;
  if (httpVersion !== '1.1') return `A request of HTTP/${httpVersion} must have no Transfer-Encoding.`;
  return coding.toLowerCase() === 'chunked'
    ? undefined
    : 'The header Transfer-Encoding must be chunked alone, sent once, or absent.';
}

/**
 * Whether a Host can only name this machine or its network: an IP address, a name without dots such as localhost, or the name
 * in the listen address. DNS rebinding: a site whose name resolves to this machine could otherwise read responses in a browser.
 */
export function isOwnHost(sent: string, listenedOn: string): boolean {
  const name = URL.parse(`http://${sent}`)?.hostname ?? '';
  if (name === '') return false;
  return (
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || !name.includes('.') || name === listenedOn.toLowerCase()
  );
}
