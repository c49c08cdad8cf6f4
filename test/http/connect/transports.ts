import type { Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { bearer, sending } from '../../support/typed-clients.ts';

/** Makes the transport of one protocol with a token. */
export type TransportMaker = (baseUrl: string, token: string) => Transport;

/** Connect over HTTP/1.1. */
export const connectOverHttp1: TransportMaker = (baseUrl, token) =>
  createConnectTransport({ baseUrl, httpVersion: '1.1', interceptors: [sending(bearer(token))] });

/** Every protocol over every HTTP version that it supports. */
export const transports: Record<string, TransportMaker> = {
  'Connect over HTTP/1.1': connectOverHttp1,
  'Connect over HTTP/2': (baseUrl, token) =>
    createConnectTransport({ baseUrl, httpVersion: '2', interceptors: [sending(bearer(token))] }),
  'Connect with JSON over HTTP/1.1': (baseUrl, token) =>
    createConnectTransport({
      baseUrl,
      httpVersion: '1.1',
      useBinaryFormat: false,
      interceptors: [sending(bearer(token))],
    }),
  'gRPC over HTTP/2': (baseUrl, token) =>
    createGrpcTransport({ baseUrl, interceptors: [sending(bearer(token))] }),
  'gRPC-Web over HTTP/1.1': (baseUrl, token) =>
    createGrpcWebTransport({ baseUrl, httpVersion: '1.1', interceptors: [sending(bearer(token))] }),
  'gRPC-Web over HTTP/2': (baseUrl, token) =>
    createGrpcWebTransport({ baseUrl, httpVersion: '2', interceptors: [sending(bearer(token))] }),
};
