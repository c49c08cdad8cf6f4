import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Certificate } from '../test/support/certificates.ts';
import { adopt, ask } from './children.ts';

/** Where receivers listen. */
export interface Ports {
  readonly healthy: readonly number[];
  readonly dead: readonly number[];
}

/** When each event came first to each receiver: Unix milliseconds, by port and by the filing that the event is about. */
export type Arrivals = Record<string, Record<string, number>>;

/** What the parent process asks of the receivers. */
export type Asked =
  | {
      readonly kind: 'start';
      readonly certificate: string;
      readonly key: string;
      readonly healthy: number;
      readonly dead: number;
    }
  | { readonly kind: 'gather'; readonly expected: number };

/** What they tell when it is done. */
export type Told = { readonly ports: Ports } | { readonly arrivals: Arrivals } | { readonly error: string };

/** Receivers of webhooks, in a process of their own. */
export interface Receivers {
  readonly ports: Ports;
  /** Waits until so many have come to those that are healthy since it was last asked, each event counted once a receiver. */
  gather(expected: number): Promise<Arrivals>;
}

/** How long what was sent may take to arrive before it counts as lost, in milliseconds. */
const arrivalMs = 240_000;

/** Starts receivers over https, each at a port of 127.0.0.1. */
export async function startReceivers(
  { certificate, key }: Pick<Certificate, 'certificate' | 'key'>,
  healthy: number,
  dead: number,
): Promise<Receivers> {
  const child = adopt(fork(join(import.meta.dirname, 'receivers.ts')));
  const told = (asked: Asked) => ask<Asked, Told>(child, asked, 'The receivers', arrivalMs);
  const started = await told({ kind: 'start', certificate, key, healthy, dead });
  if (!('ports' in started)) throw new Error('The receivers have no ports.');
  return {
    ports: started.ports,
    gather: async (expected) => {
      const came = await told({ kind: 'gather', expected });
      if (!('arrivals' in came)) throw new Error('The receivers gathered nothing.');
      return came.arrivals;
    },
  };
}
