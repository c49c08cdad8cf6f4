import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNotifications } from '../../../src/payments/reconciliation/notifications.ts';
import { createManualClock } from '../../support/clock.ts';

test('a notification is UNAVAILABLE if the provider does not name its order in time', async () => {
  const clock = createManualClock();
  const commands: unknown[] = [];
  const notifications = createNotifications({
    provider: {
      notificationMethod: 'GET',
      readNotification: () => ({ eventId: 'e', about: { resource: 'r' } }),
      subjectOf: (_, signal) => {
        const { promise, reject } = Promise.withResolvers<never>();
        signal.addEventListener('abort', () => reject(signal.reason));
        return promise;
      },
    },
    execute: async (command) => {
      commands.push(command);
      return undefined as never;
    },
    clock,
  });
  const sent = { query: '', headers: {}, body: new Uint8Array() };
  const taken = assert.rejects(notifications.take(sent), { reason: 'UNAVAILABLE' });
  // The sender waits for two seconds.
  assert.ok((clock.nextDueMs() ?? Number.POSITIVE_INFINITY) < 2_000);
  clock.advance(2_000);
  await taken;
  assert.deepEqual(commands, []);
});
