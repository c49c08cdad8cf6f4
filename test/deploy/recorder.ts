import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { listenLocally } from '../support/local-server.ts';

/** A request as it arrived. */
export interface Recorded {
  readonly method: string;
  /** The request target, byte for byte. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The response of the recorder: long, and easy to compress. */
export const recorderAnswer = JSON.stringify({ answer: 'a'.repeat(4_000) });

/** The X-Request-Id of its responses. */
export const recorderRequestId = '0198f5c2-0000-7000-8000-000000000000';

/** A request for this target is received, and its connection is then closed, as if the process was killed. */
export const droppedTarget = '/dropped';

/** A server in the place of the service that records requests. */
export interface Recorder {
  readonly url: string;
  /** The requests since the last call. */
  take(): Recorded[];
}

/** Starts a recorder; closed after the test. */
export async function startRecorder(test: Pick<TestContext, 'after'>): Promise<Recorder> {
  let recorded: Recorded[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', url: target = '', headers } = request;
    recorded.push({ method, target, headers, body: await text(request) });
    if (target === droppedTarget) return request.socket.destroy();
    response.setHeader('X-Request-Id', recorderRequestId);
    response.setHeader('Content-Type', 'application/json');
    response.setHeader('Content-Length', recorderAnswer.length);
    response.end(recorderAnswer);
  });
  // As the service does.
  server.keepAliveTimeout = 60_000;
  const url = await listenLocally(test, server, () => server.closeAllConnections());
  return {
    url,
    take: () => {
      const taken = recorded;
      recorded = [];
      return taken;
    },
  };
}
