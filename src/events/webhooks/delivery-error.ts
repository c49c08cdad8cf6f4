import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Why there is no answer: a clause about the endpoint, for its platform and the operator. What only the operator may know is in `detail`. */
export class DeliveryError extends Error {
  readonly detail: string | undefined;

  constructor(message: string, detail?: string) {
    super(message);
    this.detail = detail;
  }
}

/** The most characters of it: certificates are quoted in it, and receivers write them. */
const messageMax = 300;

const ended = 'it ended the connection before its answer was complete';
const unreachable = 'it cannot be reached';

/** By the codes of the system and of Node. */
const meanings: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ECONNRESET: ended,
  EPIPE: ended,
  ETIMEDOUT: unreachable,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  // A firewall of this machine.
  EACCES: unreachable,
  EPERM: unreachable,
  HPE_HEADER_OVERFLOW: 'the head of its answer is too long',
};

/** Puts what went wrong with a request into words, also by its connection, if it had one. What the system said has addresses. */
export function unsent(error: unknown, socket?: Socket | null): DeliveryError {
  if (error instanceof DeliveryError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const known = typeof code === 'string' ? code : '';
  return new DeliveryError(
    printable(meanings[known] ?? meaningOf(known, message, socket)),
    printable(message),
  );
}

function meaningOf(code: string, message: string, socket?: Socket | null): string {
  if (socket instanceof TLSSocket && socket.authorizationError)
    // Behind a semicolon Node says what could be done here.
    return `its certificate is not valid: ${message.split(';')[0]}`;
  if (code.startsWith('HPE_')) return 'what it answered is not HTTP';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return 'it does not speak TLS 1.2 or 1.3';
  return `the request failed: ${code || message}`;
}

/** What a receiver wrote may be anything, and is shown at terminals. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, messageMax);
}
