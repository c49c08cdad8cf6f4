import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';

/**
 * The transport for generated clients of internal systems: Connect over HTTP/2, with the bearer token on every
 * call. `createClient(FilingService, createTypedTransport(baseUrl, token))` is a client.
 */
export function createTypedTransport(baseUrl: string, token: string): Transport {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('Authorization', `Bearer ${token}`);
    return next(request);
  };
  return createConnectTransport({ baseUrl, httpVersion: '2', interceptors: [authorize] });
}
