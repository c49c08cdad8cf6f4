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
