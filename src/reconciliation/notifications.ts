import type { Clock } from '../domain/clock.ts';
import type { Institution, SentNotification } from '../payment/institution.ts';
import type { Execute } from '../store/store.ts';

/**
 * Takes a notification of the institution: remembers it, once, and makes the order that it is about due, so that
 * the institution is asked. Its word alone changes nothing. Resolves when that is on disk. Throws what
 * Institution.readNotification throws.
 */
export type TakeNotification = (sent: Omit<SentNotification, 'nowS'>) => Promise<void>;

/** What taking notifications needs. */
export interface NotificationDependencies {
  readonly institution: Pick<Institution, 'readNotification'>;
  readonly execute: Execute;
  readonly clock: Clock;
}

/** Takes the notifications of this institution. */
export function createNotifications(dependencies: NotificationDependencies): TakeNotification {
  const { institution, execute, clock } = dependencies;
  return async (sent) => {
    const nowMs = clock.nowMs();
    const { eventId, about } = institution.readNotification({ ...sent, nowS: Math.floor(nowMs / 1000) });
    if (about === undefined) return;
    await execute({ kind: 'TakeNotification', eventId, about, nowMs });
  };
}
