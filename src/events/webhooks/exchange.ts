import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Connecting, ConnectingOptions } from './agent.ts';
import { DeliveryError, deliveryError } from './delivery-error.ts';

/** How much of a response body is kept, in bytes. */
export const responseBytesMax = 512;
/**
 * How much of a response may be read, in bytes, so that the connection can be used again. A longer response is cut off with its
 * connection. All bytes count, because the thread that serves API calls parses them: the body, endless informational
 * responses, the framing of tiny chunks.
 */
const readBytesMax = 65_536;
/** The longest response head, in bytes. */
const headBytesMax = 16_384;

/** A request to the endpoint of a platform, and the signal that aborts it. */
export interface OutgoingRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  readonly signal: AbortSignal;
}

/** A response of any status. */
export interface EndpointResponse {
  readonly status: number;
  /** The first `responseBytesMax` bytes, not decompressed. */
  readonly body: Buffer;
  /** The header, unparsed. */
  readonly retryAfter: string | undefined;
}

/** The endpoint closed a kept connection, perhaps before it read the request: a new connection may work. */
export class StaleConnectionError extends Error {}

/**
 * Sends a POST request, over http or https as the URL says; `connecting` has to match. Rejects with StaleConnectionError or
 * DeliveryError, and with any error after the signal was aborted.
 */
export async function exchange(
  connecting: Connecting,
  { url, headers, body, signal }: OutgoingRequest,
): Promise<EndpointResponse> {
  const options: ConnectingOptions = {
    method: 'POST',
    headers: { ...headers, 'accept-encoding': 'identity' },
    maxHeaderSize: headBytesMax,
    ...{ ...connecting, signal, connectSignal: signal },
  };
  const request = new URL(url).protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, options);
  const responding = responseTo(request);
  limitRead(request);
  request.end(body);
  const response = await responding;
  return {
    status: response.statusCode as number,
    body: await firstBytes(response),
    retryAfter: response.headers['retry-after'],
  };
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // An endpoint that switches protocols gets here.
  const ended = () => reject(new DeliveryError('it sent no response'));
  request
    .on('response', (response) => {
      request.off('close', ended);
      resolve(response);
    })
    .on('error', (error: NodeJS.ErrnoException) => {
      const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      reject(isStale ? new StaleConnectionError() : deliveryError(error, request.socket));
    })
    .on('close', ended);
  return promise;
}

/** Closes the connection of a request that has read too much. */
function limitRead(request: ClientRequest): void {
  request.once('socket', (socket) => {
    let readBytes = 0;
    const count = (part: Buffer) => {
      readBytes += part.length;
      if (readBytes > readBytesMax) socket.destroy(new DeliveryError('its response is too long'));
    };
    socket.on('data', count);
    request.once('close', () => socket.off('data', count));
  });
}

/** Returns the first bytes of the body when it is complete, or was cut off after them. */
function firstBytes(response: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let first = Buffer.alloc(0);
  response
    .on('data', (part: Buffer) => {
      if (first.length < responseBytesMax)
        first = Buffer.concat([first, part.subarray(0, responseBytesMax - first.length)]);
    })
    .on('end', () => resolve(first))
    // The rest would not have been kept.
    .on('error', (error) =>
      first.length < responseBytesMax ? reject(deliveryError(error)) : resolve(first),
    );
  return promise;
}
