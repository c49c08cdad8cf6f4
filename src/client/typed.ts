import type { SecureClientSessionOptions } from 'node:http2';
import { connect } from 'node:net';
import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';

/** The client's certificate and the authorities that it trusts, PEM. */
export type ClientTls = Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key'>;

/**
 * The transport for generated clients of internal systems: Connect over HTTP/2, with the bearer token on every
 * call. `createClient(FilingService, createTypedTransport(baseUrl, token))` is a client. The base URL is http://host:port,
 * https://host:port, or unix:/path for a Unix socket; `tls` is needed if the service has a certificate of a private
 * authority, or requires one of the client.
 */
export function createTypedTransport(baseUrl: string, token: string, tls: ClientTls = {}): Transport {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('Authorization', `Bearer ${token}`);
    return next(request);
  };
  return createConnectTransport({
    ...http2Target(baseUrl, tls),
    httpVersion: '2',
    interceptors: [authorize],
  });
}

/** The options for a base URL as `createTypedTransport` takes it. */
export function http2Target(baseUrl: string, tls: ClientTls = {}) {
  const path = /^unix:(.+)$/.exec(baseUrl)?.[1];
  return path === undefined
    ? { baseUrl, nodeOptions: tls }
    : { baseUrl: 'http://localhost', nodeOptions: { createConnection: () => connect({ path }) } };
}
