import { type Connection, cutOff, endGently } from './connection.ts';

/** The limits of connections without a valid token. */
const unauthenticatedMax = {
  connections: 512,
  /** Open calls on one connection. */
  calls: 8,
} as const;

/** The state of a connection without a valid token. */
interface UnauthenticatedConnection {
  /** Ends the connection. */
  readonly timer: NodeJS.Timeout;
  /** The calls that wait until the tokens of earlier calls are checked; undefined if none is being checked. */
  waiting?: (() => void)[] | undefined;
}

/** The connections that have had no valid token yet. */
export interface UnauthenticatedConnections {
  /** Adds an accepted connection. */
  add(connection: Connection): void;
  /** Runs an open call of a connection; after the first few only once the connection is authenticated. */
  run(connection: Connection, call: () => void): void;
  /** Removes a connection, because one of its calls has a valid token, and runs the calls that waited. */
  identify(connection: Connection): void;
  /** Removes a connection that has ended. The calls that waited never run. */
  forget(connection: Connection): void;
}

/**
 * Denial of service: keeps clients without a valid token from using up connections and memory. A connection is limited until
 * one of its calls has a valid token:
 * - it is closed after `timeoutMs`, so that neither pings nor slow bytes keep it open;
 * - only `calls` of its calls run at a time. Further ones wait, and if none of the first has a valid token, the connection is
 *   closed;
 * - when there are too many connections, the oldest is closed. If new ones were rejected instead, anybody could lock all others
 *   out by filling the limit.
 */
export function createUnauthenticatedConnections(timeoutMs: number): UnauthenticatedConnections {
  /** The oldest first. */
  const limited = new Map<Connection, UnauthenticatedConnection>();

  function forget(connection: Connection): void {
    clearTimeout(limited.get(connection)?.timer);
    limited.delete(connection);
  }

  function end(connection: Connection | undefined): void {
    if (connection === undefined) return;
    forget(connection);
    cutOff(connection);
  }

  /** Checks a connection after the tokens of all calls that were read together; returns its calls that wait. */
  function checkSoon(connection: Connection, state: UnauthenticatedConnection): (() => void)[] {
    if (state.waiting !== undefined) return state.waiting;
    state.waiting = [];
    // Node hands over the calls of one read in ticks. The microtasks, which check their tokens, run after all of them.
    queueMicrotask(() => process.nextTick(check, connection));
    return state.waiting;
  }

  function check(connection: Connection): void {
    const state = limited.get(connection);
    if (state === undefined) return;
    const { waiting = [] } = state;
    state.waiting = undefined;
    // Even if all earlier calls are answered by now.
    if (waiting.length > 0) end(connection);
  }

  return {
    add: (connection) => {
      const timer = setTimeout(() => endGently(connection), timeoutMs).unref();
      limited.set(connection, { timer });
      const [oldest] = limited.keys();
      if (limited.size > unauthenticatedMax.connections) end(oldest);
    },
    run: (connection, call) => {
      const state = limited.get(connection);
      if (state === undefined) return call();
      const waiting = checkSoon(connection, state);
      if (connection.open.calls.length > unauthenticatedMax.calls) waiting.push(call);
      else call();
    },
    identify: (connection) => {
      const waiting = limited.get(connection)?.waiting ?? [];
      forget(connection);
      for (const call of waiting) call();
    },
    forget,
  };
}
