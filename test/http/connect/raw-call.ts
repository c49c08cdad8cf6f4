import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { bearer } from '../../support/typed-clients.ts';

/** A call whose message is sent as these bytes. */
export interface RawCall {
  readonly baseUrl: string;
  readonly token: string;
  /** Service and method within artseal.v1. */
  readonly method: string;
  readonly body: Uint8Array | string;
  readonly headers?: Record<string, string>;
}

/** How a raw call ended. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly error: ConnectError | undefined;
  /** The message of the response. */
  readonly body: Buffer;
}

/** The reason of a call that failed; undefined if it did not, or has none. */
export function reasonOf({ error }: RawAnswer): string | undefined {
  return error?.findDetails(ErrorInfoSchema)[0]?.reason;
}

/** The message of a response, in JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape.
export function jsonOf({ body }: RawAnswer): any {
  return JSON.parse(body.toString());
}

/** Sends a message with POST in a protocol and an encoding. */
export type RawSending = (call: RawCall) => Promise<RawAnswer>;

const url = ({ baseUrl, method }: RawCall) => `${baseUrl}/artseal.v1.${method}`;

/** A fetched response of Connect. */
export async function connectAnswer(response: Response): Promise<RawAnswer> {
  const { status, headers } = response;
  const body = Buffer.from(await response.arrayBuffer());
  const fallback = new ConnectError(`HTTP ${status}: ${body}`, Code.Unknown);
  const error = status === 200 ? undefined : (errorFrom(body, headers, fallback) ?? fallback);
  return { status, headers, error, body };
}

function errorFrom(body: Uint8Array, headers: Headers, fallback: ConnectError): ConnectError | undefined {
  try {
    return errorFromJsonBytes(body as Uint8Array<ArrayBuffer>, headers, fallback);
  } catch {
    return undefined;
  }
}

/** Connect over HTTP/1.1. */
export const overConnect =
  (type: string): RawSending =>
  async (call) => {
    const { token, body, headers } = call;
    const init = { 'Content-Type': type, ...bearer(token), ...headers };
    return connectAnswer(await fetch(url(call), { method: 'POST', headers: init, body: Buffer.from(body) }));
  };

/** gRPC over HTTP/2. */
export const overGrpc =
  (type: string): RawSending =>
  async (call) => {
    const session = connect(call.baseUrl);
    const request = session.request({
      ':method': 'POST',
      ':path': new URL(url(call)).pathname,
      'content-type': type,
      te: 'trailers',
      ...bearer(call.token),
      ...call.headers,
    });
    let trailers: IncomingHttpHeaders = {};
    request.on('trailers', (received) => {
      trailers = received;
    });
    request.end(enveloped(call.body));
    const [received] = await once(request, 'response');
    const body = await buffer(request);
    session.close();
    const headers = headersOf({ ...received, ...trailers });
    return { status: received[':status'], headers, error: findTrailerError(headers), body: body.subarray(5) };
  };

/** gRPC-Web over HTTP/1.1. */
export const overGrpcWeb =
  (type: string): RawSending =>
  async (call) => {
    const init = { 'Content-Type': type, ...bearer(call.token), ...call.headers };
    const body = enveloped(call.body);
    const { status, headers, ...response } = await fetched(url(call), {
      method: 'POST',
      headers: init,
      body,
    });
    const frames = framesOf(response.body);
    const end = frames.find(({ flags }) => (flags & 0x80) !== 0)?.data.toString() ?? '';
    for (const line of end.split('\r\n').filter((text) => text !== '')) {
      const colon = line.indexOf(':');
      headers.set(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    const message = frames.find(({ flags }) => flags === 0)?.data ?? Buffer.alloc(0);
    return { status, headers, error: findTrailerError(headers), body: message };
  };

async function fetched(target: string, init: RequestInit) {
  const response = await fetch(target, init);
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: new Headers(response.headers), body };
}

/** A message as gRPC frames it. */
export function enveloped(body: Uint8Array | string): Buffer<ArrayBuffer> {
  const data = Buffer.from(body);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

function framesOf(bytes: Buffer): { flags: number; data: Buffer }[] {
  const frames = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    frames.push({ flags: bytes.readUInt8(at), data: bytes.subarray(at + 5, end) });
    at = end;
  }
  return frames;
}

function headersOf(received: IncomingHttpHeaders): Headers {
  const pairs = Object.entries(received).filter(([name]) => !name.startsWith(':'));
  return new Headers(pairs.map(([name, value]) => [name, String(value)]));
}
