import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** The first bytes of every HTTP/2 connection; no HTTP/1.1 request of ours begins with them. */
const prefaceStart = Buffer.from('PRI');

/** Finds the HTTP version of a connection. Calls back with its socket to use from now on; never if it ends before. */
export type FindVersion = (socket: Socket, found: (carrier: Socket, isHttp2: boolean) => void) => void;

/**
 * Hands HTTP/2 connections to `toHttp2` and all others to the server's own listeners. The returned set has the connections
 * whose version is not known yet. The server itself accepts all of them, because its timeouts apply only to a server that listens.
 */
export function handOver(
  server: Server,
  findVersion: FindVersion,
  toHttp2: (socket: Socket) => void,
): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  const inTurn = oneInEachTurn();
  const toHttp1 = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    undecided.add(socket);
    socket.once('close', () => undecided.delete(socket));
    findVersion(socket, (carrier, isHttp2) => {
      const giveUp = () => carrier.destroy();
      carrier.on('error', giveUp).on('end', giveUp);
      const begin = (listeners: readonly ((socket: Socket) => void)[]) => {
        if (carrier.destroyed) return;
        undecided.delete(socket);
        carrier.off('error', giveUp).off('end', giveUp);
        for (const listener of listeners) listener.call(server, carrier);
      };
      if (isHttp2) inTurn(() => begin([toHttp2]));
      else begin(toHttp1);
    });
  });
  return undecided;
}

/** Recognizes HTTP/2 by its preface. */
export const sniffPreface: FindVersion = (socket, found) => {
  const giveUp = () => socket.destroy();
  socket.on('error', giveUp).on('end', giveUp);
  let head = Buffer.alloc(0);
  socket.on('readable', function sniff() {
    head = Buffer.concat([head, socket.read() ?? Buffer.alloc(0)]);
    const compared = Math.min(head.length, prefaceStart.length);
    const isStart = head.subarray(0, compared).equals(prefaceStart.subarray(0, compared));
    // One or two bytes of the preface are not enough.
    if (head.length === 0 || (isStart && compared < prefaceStart.length)) return;
    socket.off('readable', sniff);
    socket.unshift(head);
    socket.off('error', giveUp).off('end', giveUp);
    found(socket, isStart);
  });
};

/**
 * Runs tasks in order, one in each turn of the event loop. A client may send a hundred calls with the preface. If several
 * connections began in one turn, the calls of all of them would be in memory at once, because a connection that is cut off is
 * freed when the turn ends.
 */
function oneInEachTurn(): (task: () => void) => void {
  const waiting: (() => void)[] = [];
  const run = () => {
    waiting[0]?.();
    waiting.shift();
    if (waiting.length > 0) setImmediate(run);
  };
  return (task) => {
    if (waiting.push(task) === 1) setImmediate(run);
  };
}
