import { type Connection, cutOff, endGently, headerBytesMax } from './connection.ts';

/** Bounds of the connections over which nobody has shown a valid token. */
const unidentifiedMax = {
  connections: 512,
  /** Those among them that have open calls. */
  calling: 128,
  /** Open calls of one. */
  calls: 8,
  /** Characters in the headers of the open calls of one. */
  headerCharacters: 2 * headerBytesMax,
} as const;

/** What a connection has open until it is identified. */
interface Probation {
  /** Ends the connection. */
  readonly timer: NodeJS.Timeout;
  /** The calls that wait for the tokens of those before them to be checked; undefined if none is about to be. */
  waiting?: (() => void)[] | undefined;
}

/** The connections over which nobody has shown a valid token yet. */
export interface Unidentified {
  /** Takes in a connection that was accepted. */
  add(connection: Connection): void;
  /** Runs a call that is counted among the open ones of its connection; behind the first few once that is identified. */
  run(connection: Connection, call: () => void): void;
  /** Takes a connection out, for one of its calls came with a valid token, and runs the calls that waited. */
  identify(connection: Connection): void;
  /** Tells that a connection has no open calls any more. */
  callsEnded(connection: Connection): void;
  /** Takes out a connection that is ended. The calls that waited are never run. */
  forget(connection: Connection): void;
}

/**
 * Keeps peers without a valid token from holding memory: all of them together hold at most 64 MB (RFC 9113 section
 * 10.5). A connection is unidentified until one of its calls is identified, and free of this from then on. What it has
 * open until then are answers that its peer does not read. Of these connections
 * - each is ended after `patienceMs`, so that neither pings nor slow bytes keep it;
 * - only `calls` are carried out at a time. Those behind them wait for what becomes of these, and the connection is cut
 *   off if that has identified nobody, or if the headers are too long;
 * - the oldest is cut off when there are too many, and the oldest with open calls when there are too many of those.
 *   Were new ones refused instead, whoever fills the places would lock everybody out.
 */
export function createUnidentified(patienceMs: number): Unidentified {
  /** The oldest first. */
  const unidentified = new Map<Connection, Probation>();
  /** Those with open calls; whose calls are open longest first. */
  const calling = new Set<Connection>();

  function forget(connection: Connection): void {
    clearTimeout(unidentified.get(connection)?.timer);
    unidentified.delete(connection);
    calling.delete(connection);
  }

  function end(connection: Connection | undefined): void {
    if (connection === undefined) return;
    forget(connection);
    cutOff(connection);
  }

  function endOldest(among: ReadonlyMap<Connection, unknown> | ReadonlySet<Connection>, max: number): void {
    const [oldest] = among.keys();
    if (among.size > max) end(oldest);
  }

  /** Judges a connection once the tokens of all calls that were read together are checked; those that wait for it. */
  function judgeSoon(connection: Connection, probation: Probation): (() => void)[] {
    if (probation.waiting !== undefined) return probation.waiting;
    probation.waiting = [];
    // Node hands over the calls of one read in ticks, and runs the microtasks, which check the tokens, behind them all.
    queueMicrotask(() => process.nextTick(judge, connection));
    return probation.waiting;
  }

  function judge(connection: Connection): void {
    const probation = unidentified.get(connection);
    if (probation === undefined) return;
    const { waiting = [] } = probation;
    probation.waiting = undefined;
    if (connection.calls.size === 0) return;
    calling.add(connection);
    // Calls wait even if all before them are answered by now.
    const isTooMuch = connection.headerCharacters > unidentifiedMax.headerCharacters;
    if (waiting.length > 0 || isTooMuch) end(connection);
    endOldest(calling, unidentifiedMax.calling);
  }

  return {
    add: (connection) => {
      const timer = setTimeout(() => endGently(connection), patienceMs).unref();
      unidentified.set(connection, { timer });
      endOldest(unidentified, unidentifiedMax.connections);
    },
    run: (connection, call) => {
      const probation = unidentified.get(connection);
      if (probation === undefined) return call();
      const waiting = judgeSoon(connection, probation);
      if (connection.calls.size > unidentifiedMax.calls) waiting.push(call);
      else call();
    },
    identify: (connection) => {
      const waiting = unidentified.get(connection)?.waiting ?? [];
      forget(connection);
      for (const call of waiting) call();
    },
    callsEnded: (connection) => calling.delete(connection),
    forget,
  };
}
