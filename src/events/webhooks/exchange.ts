import { type Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AgentRequestOptions } from './agent.ts';
import { DeliveryError, unsent } from './delivery-error.ts';

/** How much of an answer is kept, in bytes. */
export const answerBytesMax = 512;
/**
 * How much may come over a connection for it, in bytes, so that the connection can be used again. What is longer is cut off with its
 * connection, be it a body, informational answers without end, or what encloses chunks of a byte: all of it is parsed in the thread
 * that answers calls.
 */
const readBytesMax = 65_536;
/** How long its head may be, in bytes. */
const headBytesMax = 16_384;

/** What is sent, and the signal that ends it. */
export interface Sent {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  readonly signal: AbortSignal;
}

/** An answer, whatever it says. */
export interface Answered {
  readonly status: number;
  /** The first `answerBytesMax` bytes, not decompressed. */
  readonly body: Buffer;
  /** The header as it came. */
  readonly retryAfter: string | undefined;
}

/** The receiver ended a connection that was kept, maybe before it read anything: over a new one there may be an answer. */
export class StaleConnectionError extends Error {}

/** Sends something by POST, over http or https as its URL and the agent say. Rejects with StaleConnectionError, with DeliveryError, or, where the signal ended it, with any error. */
export async function exchange(agent: Agent, { url, headers, body, signal }: Sent): Promise<Answered> {
  const options: AgentRequestOptions = {
    method: 'POST',
    headers: { ...headers, 'accept-encoding': 'identity' },
    maxHeaderSize: headBytesMax,
    ...{ agent, signal, connectSignal: signal },
  };
  const request = new URL(url).protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, options);
  const answer = answerTo(request);
  limitRead(request);
  request.end(body);
  const response = await answer;
  return {
    status: response.statusCode as number,
    body: await firstBytes(response),
    retryAfter: response.headers['retry-after'],
  };
}

function answerTo(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // A receiver that switches protocols ends it like this.
  const ended = () => reject(new DeliveryError('it gave no answer'));
  request
    .on('response', (response) => {
      request.off('close', ended);
      resolve(response);
    })
    .on('error', (error: NodeJS.ErrnoException) => {
      const isOver = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      reject(isOver ? new StaleConnectionError() : unsent(error, request.socket));
    })
    .on('close', ended);
  return promise;
}

/** Ends the connection of a request once too much came over it. */
function limitRead(request: ClientRequest): void {
  request.once('socket', (socket) => {
    let readBytes = 0;
    const count = (part: Buffer) => {
      readBytes += part.length;
      if (readBytes > readBytesMax) socket.destroy(new DeliveryError('its answer is too long'));
    };
    socket.on('data', count);
    request.once('close', () => socket.off('data', count));
  });
}

/** What is kept of the body, once it is complete or was cut off behind that. */
function firstBytes(response: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let first = Buffer.alloc(0);
  response
    .on('data', (part: Buffer) => {
      if (first.length < answerBytesMax)
        first = Buffer.concat([first, part.subarray(0, answerBytesMax - first.length)]);
    })
    .on('end', () => resolve(first))
    // The rest was of no use.
    .on('error', (error) => (first.length < answerBytesMax ? reject(unsent(error)) : resolve(first)));
  return promise;
}
