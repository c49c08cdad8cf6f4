import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { buffer, json } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { listenLocally } from '../support/local-server.ts';
import { findInstruction } from '../support/openapi.ts';

/**
 * Starts a proxy that adds a member to each open response of a service, as a later release would. Resolves with its URL;
 * `extended` lists the operations whose responses it extended.
 */
export async function startLaterRelease(t: TestContext, serviceUrl: string) {
  const extended: string[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming;
    const forwarded = request(serviceUrl + url, { method, headers });
    forwarded.end(await buffer(incoming));
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
    const { statusCode = 500, headers: answered } = answer;
    const members = await json(answer);
    const { operationId = '', responses } = findInstruction(method, url) ?? {};
    const schema = responses?.[statusCode]?.content['application/json']?.schema;
    if (schema?.additionalProperties === true) {
      Object.assign(members as object, { laterMember: { of: ['a', 'later', 'release'] } });
      extended.push(operationId);
    }
    const { 'content-length': _, ...kept } = answered;
    outgoing.writeHead(statusCode, kept).end(JSON.stringify(members));
  });
  return { url: await listenLocally(t, server, () => server.close()), extended };
}
