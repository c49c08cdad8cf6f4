import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Certificate } from '../test/support/certificates.ts';
import { adopt, ask } from './children.ts';

/** Where receivers listen. */
export interface Ports {
  readonly healthy: readonly number[];
  readonly dead: readonly number[];
}

/** When each event first arrived at each receiver: Unix milliseconds, by port and by the filing of the event. */
export type Arrivals = Record<string, Record<string, number>>;

/** A request of the parent process. */
export type Request =
  | {
      readonly kind: 'start';
      readonly certificate: string;
      readonly key: string;
      readonly healthy: number;
      readonly dead: number;
    }
  | { readonly kind: 'gather'; readonly expected: number };

/** The response to a request that is done. */
export type Response =
  | { readonly ports: Ports }
  | { readonly arrivals: Arrivals }
  | { readonly error: string };

/** Receivers of webhooks, in a process of their own. */
export type Receivers = Awaited<ReturnType<typeof startReceivers>>;

/** How long an event may take to arrive before it counts as lost, in milliseconds. */
const arrivalMs = 240_000;

/** Starts receivers over https, each on a port of 127.0.0.1. */
export async function startReceivers(
  { certificate, key }: Pick<Certificate, 'certificate' | 'key'>,
  healthy: number,
  dead: number,
) {
  const child = adopt(fork(join(import.meta.dirname, 'receivers.ts')));
  const request = (message: Request) => ask<Request, Response>(child, message, 'The receivers', arrivalMs);
  const started = await request({ kind: 'start', certificate, key, healthy, dead });
  if (!('ports' in started)) throw new Error('The receivers have no ports.');
  return {
    ports: started.ports,
    /** Resolves when `expected` events have arrived at healthy receivers since the last call. An event counts once a receiver. */
    gather: async (expected: number) => {
      const came = await request({ kind: 'gather', expected });
      if (!('arrivals' in came)) throw new Error('The receivers gathered nothing.');
      return came.arrivals;
    },
  };
}
