import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/**
 * What is wrong with the way in which an HTTP/1 request says where its body ends; undefined if nothing is. A proxy may find
 * another end where there is more than a single `chunked`, or where HTTP/1.0 has any, and take what follows for a request of
 * somebody else (RFC 9112, 6.1 and 11.2). Close the connection of such a request.
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
 * Whether a Host can only be of this machine or its network: an IP address, a name without dots, such as localhost, or the
 * name that is listened on. A browser sends any other where a site has its own name resolve to this machine (DNS rebinding),
 * and the site could read the answer.
 */
export function isOwnHost(sent: string, listenedOn: string): boolean {
  const name = URL.parse(`http://${sent}`)?.hostname ?? '';
  if (name === '') return false;
  return (
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || !name.includes('.') || name === listenedOn.toLowerCase()
  );
}
