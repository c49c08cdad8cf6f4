import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { readDatabase } from './engine.ts';
import type { IssuedPlatform } from './issued.ts';
import { artwork } from './samples.ts';
import { headersOf, type RestAnswer } from './signed-request.ts';

/** The number of connections that send filings, each with one request in flight. */
export const connections = 64;

const target = '/api/v1/filing';

/** A filing that was signed in advance. A retry sends the same bytes. */
export interface Prepared {
  readonly platform: IssuedPlatform;
  readonly author: string;
  readonly idempotencyKey: string;
  readonly body: string;
  readonly headers: Record<string, string | string[]>;
}

/** A filing and its response. */
export interface Answered extends Prepared {
  readonly filingNo: string;
  readonly hash: string;
  readonly timestamp: string;
}

/** Signs filings with different authors, numbered from `first`; the platforms take turns. */
export function prepare(issued: readonly IssuedPlatform[], filings: number, first = 1): Prepared[] {
  return Array.from({ length: filings }, (_, nth) => {
    const place = first - 1 + nth;
    const platform = issued[place % issued.length] as IssuedPlatform;
    const author = `Author ${place + 1} 齐白石`;
    const idempotencyKey = `filing-${place + 1}`;
    const body = JSON.stringify({ ...artwork, author, price: place });
    const headers = headersOf(platform, { target, body, headers: { 'Idempotency-Key': idempotencyKey } });
    return { platform, author, idempotencyKey, body, headers };
  });
}

/** Posts a filing; undefined if the connection broke before the whole response was received. */
export function post(
  agent: Agent,
  baseUrl: string,
  { headers, body }: Prepared,
): Promise<RestAnswer | undefined> {
  const { promise, resolve } = Promise.withResolvers<RestAnswer | undefined>();
  const { hostname, port } = new URL(baseUrl);
  const lost = () => resolve(undefined);
  request({ hostname, port, agent, method: 'POST', path: target, headers }, (incoming) => {
    text(incoming).then((answer) => {
      const { statusCode: status = 0, headers: received } = incoming;
      if (incoming.complete) resolve({ status, headers: received, text: answer, json: JSON.parse(answer) });
      else lost();
    }, lost);
  })
    .on('error', lost)
    .end(body);
  return promise;
}

/** Posts all waiting filings over 64 keep-alive connections, until none is left or `stop` returns true. */
export async function postAll(
  baseUrl: string,
  waiting: Prepared[],
  onAnswer: (answered: Answered) => void,
  stop: () => boolean = () => false,
): Promise<Prepared[]> {
  const unanswered: Prepared[] = [];
  async function work(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let next = waiting.shift(); next !== undefined; next = stop() ? undefined : waiting.shift()) {
      const answer = await post(agent, baseUrl, next);
      if (answer === undefined) unanswered.push(next);
      else {
        assert.equal(answer.status, 200, answer.text);
        onAnswer({ ...next, ...answer.json });
      }
    }
    agent.destroy();
  }
  await Promise.all(Array.from({ length: connections }, work));
  return unanswered;
}

/** A filing in the database. */
export interface StoredFiling {
  readonly filingNo: string;
  readonly author: string;
  readonly hash: string;
  readonly timestamp: string;
}

/** All stored filings, in order. */
export const storedFilings = (dataDir: string): Promise<StoredFiling[]> =>
  readDatabase(
    dataDir,
    (client) =>
      client
        .prepare('SELECT filing_no AS filingNo, author, hash, timestamp FROM filing ORDER BY id')
        .all() as StoredFiling[],
  );
