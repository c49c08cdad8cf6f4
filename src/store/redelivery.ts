import type { Command, Execute } from './store.ts';

/**
 * Has events sent to an endpoint again, in as many units as it takes; how many are to be sent. What was done stays done if a
 * later unit is refused, as `Redeliver` says. `executeNext` carries out the units after the first.
 */
export async function redeliver(
  execute: Execute,
  asked: Omit<Command<'Redeliver'>, 'kind' | 'counted'>,
  executeNext: Execute = execute,
): Promise<number> {
  let { count, rest } = await execute({ kind: 'Redeliver', ...asked });
  while (rest !== undefined)
    ({ count, rest } = await executeNext({ kind: 'Redeliver', ...asked, which: rest, counted: count }));
  return count;
}
