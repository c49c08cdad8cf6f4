import { get as getOverHttp, type IncomingMessage } from 'node:http';
import { get as getOverTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { publicUrl } from './client-settings.ts';
import type { Command } from './command.ts';

/** How long the service may take to answer, in milliseconds; it looks at its parts for a second at the most. */
const timeoutMs = 3_000;

/** `artseal ready` */
export const ready: Command = {
  usage: 'ready',
  summary: 'ask the service whether it is ready: for health checks that run a command',
  details: [
    'Asks /readyz where ARTSEAL_URL says, or at ARTSEAL_PUBLIC_ADDR. Exit code 1 if it is not ready, and what fails, or if',
    'nothing answers within 3 seconds.',
  ],
  run: async (_, { env, print }) => {
    const url = `${publicUrl(env)}/readyz`;
    const { status, body } = await ask(url);
    if (status !== 200) throw new Error(`${url} answers ${status}: ${body}`);
    print('ready');
    return undefined;
  },
};

/** Asks; a certificate is not looked at, for it is made for the name that others call. */
async function ask(url: string): Promise<{ status: number | undefined; body: string }> {
  const options = { signal: AbortSignal.timeout(timeoutMs), rejectUnauthorized: false };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const get = url.startsWith('https:') ? getOverTls : getOverHttp;
  get(url, options, resolve).on('error', (cause) => {
    reject(new Error(`nothing answers at ${url}`, { cause }));
  });
  const response = await promise;
  return { status: response.statusCode, body: await text(response) };
}
