import type { Clock } from '../../domain/clock.ts';
import { unavailable } from '../../domain/reason.ts';
import type { Execute } from '../../store/store.ts';
import type { Notification, NotificationMethod, PaymentProvider, SentNotification } from '../provider.ts';

/** Takes the notifications of the provider. */
export interface Notifications {
  /** How they are sent. */
  readonly method: NotificationMethod;
  /**
   * Remembers a notification, once, and makes the order that it is about due, so that the provider is asked. Its word
   * alone changes nothing. Resolves when that is on disk. Throws what PaymentProvider.readNotification throws, and UNAVAILABLE
   * if it has to be sent again.
   */
  take(sent: Omit<SentNotification, 'nowS'>): Promise<void>;
  /** The same for a notification that has been read. */
  accept(notification: Notification): Promise<void>;
}

/** What taking notifications needs. */
export interface NotificationDependencies {
  readonly provider: Pick<PaymentProvider, 'notificationMethod' | 'readNotification' | 'subjectOf'>;
  readonly execute: Execute;
  readonly clock: Clock;
}

/** How long the provider may take to say which order a notification is about, in milliseconds: the sender waits for two seconds. */
const subjectTimeoutMs = 1_500;

export function createNotifications({ provider, execute, clock }: NotificationDependencies): Notifications {
  async function subjectOf(about: Notification['about']) {
    if (about === undefined || !('resource' in about)) return about;
    const timeout = new AbortController();
    const late = new Error(`The provider did not answer within ${subjectTimeoutMs} ms.`);
    const cancel = clock.after(subjectTimeoutMs, () => timeout.abort(late));
    try {
      return await provider.subjectOf?.(about.resource, timeout.signal);
    } catch (cause) {
      throw unavailable('It is not known yet which order this is about. Send it again.', cause);
    } finally {
      cancel();
    }
  }

  async function accept({ eventId, about }: Notification): Promise<void> {
    const nowMs = clock.nowMs();
    const subject = await subjectOf(about);
    if (subject === undefined) return;
    await execute({ kind: 'TakeNotification', eventId, about: subject, nowMs });
  }

  return {
    method: provider.notificationMethod,
    take: async (sent) =>
      accept(provider.readNotification({ ...sent, nowS: Math.floor(clock.nowMs() / 1000) })),
    accept,
  };
}
