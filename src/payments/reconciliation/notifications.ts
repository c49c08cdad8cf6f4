import type { Clock } from '../../domain/clock.ts';
import { unavailable } from '../../domain/reason.ts';
import type { Execute } from '../../store/store.ts';
import type { Institution, Notification, NotificationMethod, SentNotification } from '../provider.ts';

/** Takes the notifications of the institution. */
export interface Notifications {
  /** How they are sent. */
  readonly method: NotificationMethod;
  /**
   * Remembers a notification, once, and makes the order that it is about due, so that the institution is asked. Its word
   * alone changes nothing. Resolves when that is on disk. Throws what Institution.readNotification throws, and UNAVAILABLE
   * if it has to be sent again.
   */
  take(sent: Omit<SentNotification, 'nowS'>): Promise<void>;
}

/** What taking notifications needs. */
export interface NotificationDependencies {
  readonly institution: Pick<Institution, 'notificationMethod' | 'readNotification' | 'subjectOf'>;
  readonly execute: Execute;
  readonly clock: Clock;
}

/** How long the institution may take to say which order a notification is about, in milliseconds: the sender waits for two seconds. */
const subjectTimeoutMs = 1_500;

export function createNotifications({
  institution,
  execute,
  clock,
}: NotificationDependencies): Notifications {
  async function subjectOf(about: Notification['about']) {
    if (about === undefined || !('resource' in about)) return about;
    const patience = new AbortController();
    const late = new Error(`The institution did not answer within ${subjectTimeoutMs} ms.`);
    const callOff = clock.after(subjectTimeoutMs, () => patience.abort(late));
    try {
      return await institution.subjectOf?.(about.resource, patience.signal);
    } catch (cause) {
      throw unavailable('It is not known yet which order this is about. Send it again.', cause);
    } finally {
      callOff();
    }
  }

  return {
    method: institution.notificationMethod,
    take: async (sent) => {
      const nowMs = clock.nowMs();
      const { eventId, about } = institution.readNotification({ ...sent, nowS: Math.floor(nowMs / 1000) });
      const subject = await subjectOf(about);
      if (subject === undefined) return;
      await execute({ kind: 'TakeNotification', eventId, about: subject, nowMs });
    },
  };
}
