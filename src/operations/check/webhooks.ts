import { type Config, settings } from '../../config/config.ts';
import { reachProxy } from '../../events/webhooks/proxy.ts';
import { trusting } from '../../events/webhooks/trust.ts';
import { type Finding, findingsOf, messageOf } from './finding.ts';

/** How long the proxy is waited for, in milliseconds. */
const answerMs = 3_000;

/** Where webhooks are sent, and whether the proxy that they are sent through can be reached. */
export async function checkWebhooks({ webhooks }: Pick<Config, 'webhooks'>): Promise<Finding> {
  const { ok, fault } = findingsOf('webhooks');
  const { networks, proxy, authorities } = webhooks;
  const allowed = networks.map(({ address, bits }) => `${address}/${bits}`);
  const to = `they are sent to public addresses ${allowed.length === 0 ? 'alone' : `and ${allowed.join(', ')}`}`;
  if (proxy === undefined) return ok(to);
  // Without its user and password.
  const named = `${proxy.protocol}//${proxy.host}`;
  try {
    await reachProxy(proxy, trusting(authorities), AbortSignal.timeout(answerMs));
    return ok(`${to}, through ${named}, which takes connections`);
  } catch (error) {
    return fault(
      `the proxy ${named} of ${settings.webhookProxy.variable} cannot be reached: ${messageOf(error)}; nothing is sent until it can`,
    );
  }
}
