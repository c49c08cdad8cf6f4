import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { verifyWebhook } from '../../src/client/index.ts';
import type { Certificate } from '../support/certificates.ts';
import { listenLocally } from '../support/local-server.ts';
import type { Random } from '../support/random.ts';

/** A webhook that came as a whole. */
export interface Arrival {
  readonly id: string;
  readonly body: string;
  readonly isAccepted: boolean;
}

/** Receives webhooks, each path those of one endpoint. */
export interface MoodyReceiver {
  /** https://host:port. */
  readonly url: string;
  /** Says what an endpoint's webhooks are signed with. */
  knows(path: string, secret: string): void;
  /** What came to an endpoint, in the order in which it came. */
  arrivals(path: string): readonly Arrival[];
  /** What is wrong with webhooks that came, each in a line. */
  readonly faults: readonly string[];
}

/** What may go wrong with a webhook that comes for the first time; the second time it is accepted, so that no retry is far away. */
const moods = ['REFUSE', 'RESET'] as const;

/** One of so many webhooks is met with a mood, and one of so many of the others answered late. */
const moodyOneOf = 12;
const lateOneOf = 6;
const lateMs = 300;

/** Starts a receiver that fails at random: it refuses, breaks the connection, or takes its time. */
export async function startMoodyReceiver(
  test: Pick<TestContext, 'after'>,
  { certificate: cert, key }: Certificate,
  random: Random,
): Promise<MoodyReceiver> {
  const secrets = new Map<string, string>();
  const arrivals = new Map<string, Arrival[]>();
  const met = new Set<string>();
  const faults: string[] = [];

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: path = '', headers } = request;
    const body = (await buffer(request)).toString();
    const id = String(headers['webhook-id']);
    try {
      verifyWebhook({ headers, body, secret: secrets.get(path) ?? [] });
    } catch (error) {
      faults.push(`${path} ${id}: ${error}`);
    }
    const isFirst = !met.has(`${path} ${id}`);
    met.add(`${path} ${id}`);
    const mood = isFirst && random.below(moodyOneOf) === 0 ? random.pick(moods) : undefined;
    const own = arrivals.get(path) ?? [];
    own.push({ id, body, isAccepted: mood === undefined });
    arrivals.set(path, own);
    if (mood === undefined) {
      setTimeout(
        () => response.writeHead(204).end(),
        random.below(lateOneOf) === 0 ? random.below(lateMs) : 0,
      );
    } else if (mood === 'REFUSE') response.writeHead(500).end('not now');
    else request.socket.destroy();
  }

  const server = createServer({ cert, key }, (request, response) => {
    // A service that is killed takes its requests along.
    receive(request, response).catch(() => {});
  });
  // No connection ends by itself while it might be used again.
  server.keepAliveTimeout = 0;
  const url = await listenLocally(test, server, () => server.closeAllConnections());
  return {
    url: url.replace('http:', 'https:'),
    knows: (path, secret) => {
      secrets.set(path, secret);
    },
    arrivals: (path) => arrivals.get(path) ?? [],
    faults,
  };
}
