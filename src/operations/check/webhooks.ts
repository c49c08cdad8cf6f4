import { type Config, settings } from '../../config/config.ts';
import { reachProxy } from '../../events/webhooks/proxy.ts';
import { trusting } from '../../events/webhooks/trust.ts';
import { type Finding, findingsOf, messageOf } from './finding.ts';

/** Timeout of the proxy, in milliseconds. */
const answerMs = 3_000;

/** Says where webhooks are sent, and checks that their proxy can be reached. */
export async function checkWebhooks({ webhooks }: Pick<Config, 'webhooks'>): Promise<Finding> {
  const { ok, fault } = findingsOf('webhooks');
  const { networks, proxy, authorities } = webhooks;
  const allowed = networks.map(({ address, bits }) => `${address}/${bits}`);
  const to = `they are sent to public addresses ${allowed.length === 0 ? 'only' : `and ${allowed.join(', ')}`}`;
  if (proxy === undefined) return ok(to);
  // Leaves out user and password.
  const named = `${proxy.protocol}//${proxy.host}`;
  try {
    await reachProxy(proxy, trusting(authorities), AbortSignal.timeout(answerMs));
    return ok(`${to}, through ${named}, which accepts connections`);
  } catch (error) {
    return fault(
      `the proxy ${named} of ${settings.webhookProxy.variable} cannot be reached: ${messageOf(error)}; nothing is sent until it can`,
    );
  }
}
