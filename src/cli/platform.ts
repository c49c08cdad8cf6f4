import type { PlatformStatus } from '../domain/caller.ts';
import type { Platform } from '../store/caller-commands.ts';
import { allOf } from '../store/paging.ts';
import { localActor } from './actor.ts';
import type { Action, CommandGroup, Terminal, Words } from './command.ts';
import { withRegistry } from './registry.ts';

const list: Action = {
  usage: 'platform list [--json]',
  details: [],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }) => {
      const platforms = allOf((page) => execute({ kind: 'ListPlatforms', page }));
      for await (const found of platforms) show(found, words, terminal);
    }),
};

/** An action that gives a platform a status. */
function setting(word: string, status: PlatformStatus, ...details: readonly string[]): Action {
  return {
    usage: `platform ${word} NAME [--reason TEXT] [--json]`,
    details,
    run: (words, terminal) =>
      withRegistry(terminal, async ({ execute }) => {
        const [by, name] = [localActor(words, terminal), words.required('NAME')];
        const changed = await execute({ kind: 'SetPlatformStatus', by, name, status });
        show(changed, words, terminal);
      }),
  };
}

/** `artseal platform` */
export const platform: CommandGroup = {
  summary: 'suspend and resume platforms as a whole',
  actions: [
    list,
    setting(
      'suspend',
      'SUSPENDED',
      'refuses every key of the platform until it is resumed, keys that it is issued meanwhile, too.',
      'Orders that it opened are settled all the same.',
    ),
    setting('resume', 'ACTIVE', 'lets it in again, but not with keys that were suspended by themselves.'),
  ],
  details: ['NAME is what key create --name gave it. A running server honours changes at once.'],
};

function show(found: Platform, words: Words, { print }: Terminal): void {
  const { caller: name, tier, status } = found;
  const monthlyQuota = found.monthlyQuota ?? 'unlimited';
  const columns = [status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), name];
  print(words.has('json') ? JSON.stringify({ name, tier, monthlyQuota, status }) : columns.join('  '));
}
