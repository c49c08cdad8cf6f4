import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** What every HTTP/2 connection begins with, as far as it takes to tell it from HTTP/1.1. */
const prefaceStart = Buffer.from('PRI');

/** Finds out which HTTP a connection speaks, and tells it with what goes on over it; never if it ends before. */
export type FindVersion = (socket: Socket, found: (carrier: Socket, isHttp2: boolean) => void) => void;

/**
 * Hands connections that turn out to speak HTTP/2 to `toHttp2` and all others to the server's own listeners; the
 * connections that are with neither yet are in the set. The server keeps accepting, for its timeouts look only at
 * connections of a server that listens.
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

/** Finds HTTP/2 by the preface that it begins with. */
export const sniffPreface: FindVersion = (socket, found) => {
  const giveUp = () => socket.destroy();
  socket.on('error', giveUp).on('end', giveUp);
  let head = Buffer.alloc(0);
  socket.on('readable', function sniff() {
    head = Buffer.concat([head, socket.read() ?? Buffer.alloc(0)]);
    const compared = Math.min(head.length, prefaceStart.length);
    const isStart = head.subarray(0, compared).equals(prefaceStart.subarray(0, compared));
    // One or two bytes of the preface decide nothing yet.
    if (head.length === 0 || (isStart && compared < prefaceStart.length)) return;
    socket.off('readable', sniff);
    socket.unshift(head);
    socket.off('error', giveUp).off('end', giveUp);
    found(socket, isStart);
  });
};

/**
 * Runs tasks in their order, one in each turn of the event loop. A peer may send a hundred calls with the preface. Were
 * several connections begun in one turn, the calls of all of them would be held at once: what is cut off is let go of
 * when the turn ends.
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
