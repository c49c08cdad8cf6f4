import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** TLS 1.2 or 1.3 to whom the authorities that Node trusts vouch for, and these, PEM, if there are any. */
export function trusting(authorities: string | undefined): SecureContext {
  const ca = authorities === undefined ? undefined : [...getCACertificates('default'), authorities];
  return createSecureContext({ minVersion: 'TLSv1.2', ca });
}
