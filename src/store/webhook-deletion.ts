import { Refusal } from '../domain/reason.ts';
import type { Command, Execute } from './store.ts';

/** Deletes an endpoint with its deliveries, in as many units as it takes; refused as `DeleteWebhook` says. */
export async function deleteWebhook(
  execute: Execute,
  asked: Omit<Command<'DeleteWebhook'>, 'kind'>,
): Promise<void> {
  const unit = { kind: 'DeleteWebhook', ...asked } as const;
  let { isDone } = await execute(unit);
  // The first may be what an earlier call was told, or somebody else deletes it as well.
  while (!isDone) isDone = (await execute(unit).catch(doneIfGone)).isDone;
}

function doneIfGone(error: unknown): { readonly isDone: boolean } {
  if (error instanceof Refusal && error.reason === 'WEBHOOK_NOT_FOUND') return { isDone: true };
  throw error;
}
