import type { Config } from './config.ts';
import type { Clock } from './domain/clock.ts';
import type { Institution } from './payment/institution.ts';

/** Opens the institution of a deployment. `notificationUrl` is where a simulated one sends its notifications. */
export async function openInstitution(
  { stripe, dataDir }: Config,
  clock: Clock,
  notificationUrl: () => string | undefined,
): Promise<Institution> {
  // Loaded when needed: each brings libraries of its own.
  if (stripe !== undefined) {
    const { createStripeInstitution } = await import('./payment/stripe/institution.ts');
    return createStripeInstitution(stripe, clock.nowMs);
  }
  const { createSimulatedInstitution } = await import('./payment/simulated/institution.ts');
  return createSimulatedInstitution({
    dataDir,
    clock,
    deliver: async ({ headers, body }, signal) => {
      const url = notificationUrl();
      if (url === undefined) throw new Error('The service does not listen yet.');
      const { ok, status, body: answer } = await fetch(url, { method: 'POST', headers, body, signal });
      await answer?.cancel();
      if (!ok) throw new Error(`The notification was answered with ${status}.`);
    },
  });
}
