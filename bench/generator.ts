import { fork } from 'node:child_process';
import { join } from 'node:path';
import { adopt, ask } from './children.ts';
import type { Credentials } from './credentials.ts';
import type { ListenerName, Server } from './servers.ts';

/** The measured calls: three of the public API, one of the internal API. */
export const workloads = ['filing', 'keyed', 'provenance', 'typed'] as const;

/** One of the calls that are measured. */
export type Workload = (typeof workloads)[number];

/** The filings that can be asked for: those of a year from 1 to the last. */
export interface Filed {
  readonly year: number;
  readonly last: number;
}

/** Requests to be built, and signed, before they are sent. */
export interface Preparation {
  readonly workload: Workload;
  readonly requests: number;
  readonly filed: Filed;
  /** The requests are made once with each of these. */
  readonly credentials: readonly Credentials[];
}

/** Prepared requests to be sent. */
export interface Sending {
  /** The connections are opened to these in turn. */
  readonly ports: readonly number[];
  /** The token of the credentials with which the requests were prepared. */
  readonly token: string;
  /** Connections that are kept open, each with one request in flight. */
  readonly connections: number;
  /** Requests that are due each second, whatever the answers take. Undefined: as fast as they are answered. */
  readonly perS?: number | undefined;
}

/** What the parent process asks of the load generator. */
export type Order = ({ readonly kind: 'prepare' } & Preparation) | ({ readonly kind: 'send' } & Sending);

/** How the sending went. */
export interface Sent {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Processor time of the generator itself, in seconds. */
  readonly cpuS: number;
  /** Answers other than 200, and the first of them. */
  readonly refused: number;
  readonly firstRefusal: string;
  /** The names of the members of one answer, in the order of the alphabet. */
  readonly members: string;
}

/** What the generator says when an order is done. */
export type Outcome = { readonly sent?: Sent } | { readonly error: string };

/** The load generator. */
export type Load = ReturnType<typeof startLoad>;

/** How long an order may take before the generator counts as hung, in milliseconds. */
const orderMs = 240_000;

/** Filings that are signed at a time while a service is filled: signatures are good for minutes alone. */
const signedAtOnce = 20_000;
/** Connections over which they are sent. */
const fillingConnections = 64;

/** What the generator needs to know of a server. */
type Target = Pick<Server, 'name' | 'credentials' | 'ports' | 'second' | 'lastWords'>;

/** Starts the load generator. */
export function startLoad() {
  const child = adopt(fork(join(import.meta.dirname, 'load.ts')));
  const carryOut = (order: Order) => ask<Order, Outcome>(child, order, 'The load generator', orderMs);
  const prepare = async (preparation: Preparation) => {
    await carryOut({ kind: 'prepare', ...preparation });
  };
  async function send(server: Target, listener: ListenerName, connections: number, perS?: number) {
    const { name, credentials, second, lastWords } = server;
    const ports = [server, second].flatMap((instance) => instance?.ports[listener] ?? []);
    if (ports.length === 0) throw new Error(`The server ${name} has no ${listener} listener.`);
    const order = { kind: 'send', ports, token: credentials.token, connections, perS } as const;
    const { sent } = await carryOut(order).catch((error) => {
      throw new Error(`${error.message} (sending to the server ${name})\n${lastWords()}`);
    });
    if (sent === undefined) throw new Error('The load generator sent nothing.');
    if (sent.refused > 0) {
      const { refused, requests, firstRefusal } = sent;
      throw new Error(
        `The server ${name} did not answer 200 to ${refused} of ${requests} requests:\n${firstRefusal}`,
      );
    }
    return sent;
  }
  return {
    /** Builds the requests that `send` sends. */
    prepare,
    /** Sends the prepared requests to a listener, once to each server; with `perS` at that rate. */
    send,
    /** Files so many artworks on a server. */
    file: async (server: Server, filings: number) => {
      const filed = { year: new Date().getUTCFullYear(), last: 1 };
      for (let left = filings; left > 0; left -= signedAtOnce) {
        const requests = Math.min(left, signedAtOnce);
        await prepare({ workload: 'filing', requests, filed, credentials: [server.credentials] });
        await send(server, 'public', fillingConnections);
      }
    },
  };
}
