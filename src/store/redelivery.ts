import type { Command, Execute } from './store.ts';

/**
 * Has events sent to an endpoint again, in as many units as it takes; how many are to be sent. What was done stays done if a
 * later unit is refused, as `Redeliver` says.
 */
export async function redeliver(
  execute: Execute,
  asked: Omit<Command<'Redeliver'>, 'kind'>,
): Promise<number> {
  let { count, rest } = await execute({ kind: 'Redeliver', ...asked });
  while (rest !== undefined) {
    const more = await execute({ kind: 'Redeliver', ...asked, which: rest });
    count += more.count;
    rest = more.rest;
  }
  return count;
}
