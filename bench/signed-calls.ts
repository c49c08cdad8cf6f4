import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { signedHeaders } from '../src/client/sign.ts';

/** A platform. */
type Signer = Parameters<typeof signedHeaders>[0];

type Sent = [by: Signer, method: string, target: string, content?: object];

/** Signed calls over connections that are kept. */
export type Calls = ReturnType<typeof openCalls>;

export function openCalls(port: number | undefined) {
  const agent = new Agent({ keepAlive: true });
  const begin = async (...[by, method, path, content]: Sent): Promise<IncomingMessage> => {
    const body = content === undefined ? '' : JSON.stringify(content);
    const type = content === undefined ? {} : { 'Content-Type': 'application/json' };
    const headers = { ...type, ...signedHeaders(by, { method, target: path, body }) };
    const sent = request({ host: '127.0.0.1', port, agent, method, path, headers });
    sent.end(body);
    const [response] = await once(sent, 'response');
    return response;
  };
  return {
    send: async (...sent: Sent) => {
      const response = await begin(...sent);
      return { status: response.statusCode ?? 0, body: await text(response) };
    },
    /** Reads the answer without looking at it; its status. */
    drain: async (...sent: Sent) => {
      const response = await begin(...sent);
      response.resume();
      await once(response, 'end');
      return response.statusCode ?? 0;
    },
    end: () => agent.destroy(),
  };
}
