import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { CountedResponse } from '../listen/counted-response.ts';
import { lingerMs } from './connection.ts';

/**
 * An HTTP/1.1 answer that is the last of its connection if its request is not read to the end: what is left of that
 * stands before the next request. The connection then lingers (RFC 9112 section 9.6), since closing it while
 * something is unread would reset it, and take the answer away from a client that has not read it yet.
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

/** Lets the client end its connection once it is answered, and ends it a little later in any case. */
function linger(socket: Socket, request: IncomingMessage): void {
  // Node calls this when the answer has left.
  socket.destroySoon = () => {
    socket.end();
    // Whoever read the request may have stopped in the middle: read on, and throw away.
    request.push = () => true;
    socket.resume();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  };
}
