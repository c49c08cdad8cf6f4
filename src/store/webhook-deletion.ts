import { ApiError } from '../domain/reason.ts';
import type { Command, Execute } from './store.ts';

/**
 * Deletes an endpoint with its deliveries, in as many units as it takes; refused as `DeleteWebhook` says. `executeNext` carries
 * out the units after the first.
 */
export async function deleteWebhook(
  execute: Execute,
  asked: Omit<Command<'DeleteWebhook'>, 'kind'>,
  executeNext: Execute = execute,
): Promise<void> {
  const unit = { kind: 'DeleteWebhook', ...asked } as const;
  let { isDone } = await execute(unit);
  // Somebody else may delete it as well.
  while (!isDone) isDone = (await executeNext(unit).catch(doneIfGone)).isDone;
}

function doneIfGone(error: unknown): { readonly isDone: boolean } {
  if (error instanceof ApiError && error.reason === 'WEBHOOK_NOT_FOUND') return { isDone: true };
  throw error;
}
