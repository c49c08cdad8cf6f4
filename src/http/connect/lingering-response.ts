import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { CountedResponse } from '../listen/counted-response.ts';
import { lingerMs } from './connection.ts';

/**
 * An HTTP/1.1 response that is the last on its connection if its request was not read to the end, because the rest comes before
 * the next request. The connection then lingers (RFC 9112 section 9.6): closing it with unread bytes would reset it, and the client
 * might lose the response.
 */
export class LingeringResponse extends CountedResponse {
  override writeHead(...head: unknown[]): this {
    if (!this.req.complete && this.socket !== null) {
      this.setHeader('Connection', 'close');
      linger(this.socket, this.req);
    }
    return Reflect.apply(super.writeHead, this, head);
  }
}

/** Lets the client close its connection after the response, and closes it after `lingerMs` in any case. */
function linger(socket: Socket, request: IncomingMessage): void {
  // Node calls this when the response is sent.
  socket.destroySoon = () => {
    socket.end();
    // The reader of the request may have stopped: read the rest and discard it.
    request.push = () => true;
    socket.resume();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  };
}
