import { fork } from 'node:child_process';
import { join } from 'node:path';
import { adopt, ask } from './children.ts';
import type { Order, Outcome, Preparation, Sent } from './orders.ts';
import type { ListenerName, Server } from './servers.ts';

/** The load generator. */
export interface Load {
  /** Builds the requests that `send` sends. */
  prepare(preparation: Preparation): Promise<void>;
  /** Sends the prepared requests to a listener, once to each server. */
  send(server: Server, listener: ListenerName, connections: number): Promise<Sent>;
}

/** How long an order may take before the generator counts as hung, in milliseconds. */
const orderMs = 240_000;

/** Starts the load generator. */
export function startLoad(): Load {
  const child = adopt(fork(join(import.meta.dirname, 'load.ts')));
  const carryOut = (order: Order) => ask<Order, Outcome>(child, order, 'The load generator', orderMs);
  return {
    prepare: async (preparation) => {
      await carryOut({ kind: 'prepare', ...preparation });
    },
    send: async ({ name, ports, credentials, lastWords }, listener, connections) => {
      const port = ports[listener];
      if (port === undefined) throw new Error(`The server ${name} has no ${listener} listener.`);
      const order = { kind: 'send', port, token: credentials.token, connections } as const;
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
    },
  };
}
