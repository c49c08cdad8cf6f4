import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** TLS 1.2 or 1.3, with the certificate authorities that Node trusts and `authorities`, PEM. */
export function trusting(authorities: string | undefined): SecureContext {
  const ca = authorities === undefined ? undefined : [...getCACertificates('default'), authorities];
  return createSecureContext({ minVersion: 'TLSv1.2', ca });
}
