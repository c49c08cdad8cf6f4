import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { OwnListener } from '../provider.ts';
import type { SignedNotification } from './notifications.ts';

/** Posts a notification to the service; rejects unless it is taken. */
export async function post(
  { url, certificate }: OwnListener,
  { headers, body }: SignedNotification,
  signal: AbortSignal,
): Promise<void> {
  const options = {
    method: 'POST',
    headers: { ...headers, 'content-length': body.length },
    signal,
    agent: false,
  };
  const posted =
    certificate === undefined
      ? requestHttp(url, options)
      : requestHttps(url, { ...options, ...trusting(certificate) });
  posted.end(body);
  const [answer] = (await once(posted, 'response')) as [IncomingMessage];
  const { statusCode } = answer.resume();
  if (statusCode !== 200) throw new Error(`The notification was answered with ${statusCode}.`);
}

/** This one certificate is enough, and no other will do: it was not made for the address of this machine. */
function trusting(certificate: string) {
  return { ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
}
