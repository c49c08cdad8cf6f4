import type { Clock } from '../../domain/clock.ts';
import { unavailable } from '../../domain/reason.ts';
import { withTimeout } from '../../lib/timing.ts';
import type { Execute } from '../../store/store.ts';
import type { Notification, PaymentProvider, SentNotification } from '../provider.ts';

/** Accepts the notifications of the provider. */
export type Notifications = ReturnType<typeof createNotifications>;

interface NotificationDependencies {
  readonly provider: Pick<PaymentProvider, 'notificationMethod' | 'readNotification' | 'subjectOf'>;
  readonly execute: Execute;
  readonly clock: Clock;
}

/** How long the provider may take to name the order of a notification, in milliseconds: senders wait two seconds. */
const subjectTimeoutMs = 1_500;

/** Creates the acceptance of notifications. */
export function createNotifications({ provider, execute, clock }: NotificationDependencies) {
  async function subjectOf(about: Notification['about']) {
    if (about === undefined || !('resource' in about)) return about;
    const reason = new Error(`The provider did not answer within ${subjectTimeoutMs} ms.`);
    const limit = { ms: subjectTimeoutMs, reason };
    try {
      return await withTimeout(clock, limit, async (signal) => provider.subjectOf?.(about.resource, signal));
    } catch (cause) {
      throw unavailable('It is not known yet which order this is about. Send it again.', cause);
    }
  }

  /** Stores a notification that was read, like `take`. */
  async function accept({ eventId, about }: Notification): Promise<void> {
    const nowMs = clock.nowMs();
    const subject = await subjectOf(about);
    if (subject === undefined) return;
    await execute({ kind: 'TakeNotification', eventId, about: subject, nowMs });
  }

  return {
    method: provider.notificationMethod,
    /**
     * Stores a notification once and makes its order due for a look-up. Its content changes nothing. Resolves when it is
     * durable. Throws what PaymentProvider.readNotification throws, and UNAVAILABLE if the provider has to send it again.
     */
    take: async (sent: Omit<SentNotification, 'nowS'>): Promise<void> =>
      accept(provider.readNotification({ ...sent, nowS: Math.floor(clock.nowMs() / 1000) })),
    accept,
  };
}
