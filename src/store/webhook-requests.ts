import { ApiError } from '../domain/reason.ts';
import type { Command, Execute } from './store.ts';

/**
 * Sends events to an endpoint again, in as many `Redeliver` requests as needed, and returns the number of events. If a later
 * request fails, the earlier ones stay. `executeNext` runs all requests after the first.
 */
export async function redeliver(
  execute: Execute,
  wanted: Omit<Command<'Redeliver'>, 'kind' | 'counted'>,
  executeNext: Execute = execute,
): Promise<number> {
  let { count, rest } = await execute({ kind: 'Redeliver', ...wanted });
  while (rest !== undefined)
    ({ count, rest } = await executeNext({ kind: 'Redeliver', ...wanted, which: rest, counted: count }));
  return count;
}

/**
 * Deletes an endpoint and its deliveries, in as many `DeleteWebhook` requests as needed. `executeNext` runs all requests after
 * the first.
 */
export async function deleteWebhook(
  execute: Execute,
  named: Omit<Command<'DeleteWebhook'>, 'kind'>,
  executeNext: Execute = execute,
): Promise<void> {
  const command = { kind: 'DeleteWebhook', ...named } as const;
  let { isDone } = await execute(command);
  // Another call may delete it at the same time.
  while (!isDone) isDone = (await executeNext(command).catch(doneIfGone)).isDone;
}

function doneIfGone(error: unknown): { readonly isDone: boolean } {
  if (error instanceof ApiError && error.reason === 'WEBHOOK_NOT_FOUND') return { isDone: true };
  throw error;
}
