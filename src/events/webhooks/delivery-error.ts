import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/**
 * A request that got no response. The message is a clause about the endpoint, for its platform and the operator. `detail` is
 * for the operator only: it may have addresses.
 */
export class DeliveryError extends Error {
  readonly detail: string | undefined;

  constructor(message: string, detail?: string) {
    super(message);
    this.detail = detail;
  }
}

/** The longest message, in characters: messages quote certificates, which receivers write. */
const messageMax = 300;

const ended = 'it ended the connection before its response was complete';
const unreachable = 'it cannot be reached';

/** Messages by error codes of the system and of Node. */
const messages: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ECONNRESET: ended,
  EPIPE: ended,
  ETIMEDOUT: unreachable,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  // From a firewall of this machine.
  EACCES: unreachable,
  EPERM: unreachable,
  HPE_HEADER_OVERFLOW: 'its response headers are too long',
};

/** Converts what went wrong with a request, and with its connection if there was one. Messages of the system have addresses. */
export function deliveryError(error: unknown, socket?: Socket | null): DeliveryError {
  if (error instanceof DeliveryError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const known = typeof code === 'string' ? code : '';
  return new DeliveryError(
    printable(messages[known] ?? messageOf(known, message, socket)),
    printable(message),
  );
}

function messageOf(code: string, message: string, socket?: Socket | null): string {
  if (socket instanceof TLSSocket && socket.authorizationError)
    // After a semicolon Node says what the server could do.
    return `its certificate is not valid: ${message.split(';')[0]}`;
  if (code.startsWith('HPE_')) return 'its response is not HTTP';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return 'it does not speak TLS 1.2 or 1.3';
  return `the request failed: ${code || message}`;
}

/** Receivers can put control characters into it, and terminals show it. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, messageMax);
}
