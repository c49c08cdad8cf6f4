import { type Connection, cutOff, endGently } from './connection.ts';

/** Bounds of the connections over which nobody has shown a valid token. */
const unauthenticatedMax = {
  connections: 512,
  /** Open calls of one. */
  calls: 8,
} as const;

/** What a connection has open until it is identified. */
interface UnauthenticatedConnection {
  /** Ends the connection. */
  readonly timer: NodeJS.Timeout;
  /** The calls that wait for the tokens of those before them to be checked; undefined if none is about to be. */
  waiting?: (() => void)[] | undefined;
}

/** The connections over which nobody has shown a valid token yet. */
export interface UnauthenticatedConnections {
  /** Takes in a connection that was accepted. */
  add(connection: Connection): void;
  /** Runs a call that is counted among the open ones of its connection; behind the first few once that is identified. */
  run(connection: Connection, call: () => void): void;
  /** Takes a connection out, for one of its calls came with a valid token, and runs the calls that waited. */
  identify(connection: Connection): void;
  /** Takes out a connection that is ended. The calls that waited are never run. */
  forget(connection: Connection): void;
}

/**
 * Keeps peers without a valid token from taking the places of others. A connection is unidentified until one of its calls is
 * identified, and free of this from then on. Of these connections
 * - each is ended after `timeoutMs`, so that neither pings nor slow bytes keep it;
 * - only `calls` are carried out at a time. Those behind them wait for what becomes of these, and the connection is cut
 *   off if that has identified nobody;
 * - the oldest is cut off when there are too many. Were new ones refused instead, whoever fills the places would lock
 *   everybody out.
 */
export function createUnauthenticatedConnections(timeoutMs: number): UnauthenticatedConnections {
  /** The oldest first. */
  const unidentified = new Map<Connection, UnauthenticatedConnection>();

  function forget(connection: Connection): void {
    clearTimeout(unidentified.get(connection)?.timer);
    unidentified.delete(connection);
  }

  function end(connection: Connection | undefined): void {
    if (connection === undefined) return;
    forget(connection);
    cutOff(connection);
  }

  /** AddressPolicies a connection once the tokens of all calls that were read together are checked; those that wait for it. */
  function judgeSoon(connection: Connection, probation: UnauthenticatedConnection): (() => void)[] {
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
    // Calls wait even if all before them are answered by now.
    if (waiting.length > 0) end(connection);
  }

  return {
    add: (connection) => {
      const timer = setTimeout(() => endGently(connection), timeoutMs).unref();
      unidentified.set(connection, { timer });
      const [oldest] = unidentified.keys();
      if (unidentified.size > unauthenticatedMax.connections) end(oldest);
    },
    run: (connection, call) => {
      const probation = unidentified.get(connection);
      if (probation === undefined) return call();
      const waiting = judgeSoon(connection, probation);
      if (connection.open.calls.length > unauthenticatedMax.calls) waiting.push(call);
      else call();
    },
    identify: (connection) => {
      const waiting = unidentified.get(connection)?.waiting ?? [];
      forget(connection);
      for (const call of waiting) call();
    },
    forget,
  };
}
