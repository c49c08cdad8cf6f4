import type { Action, CommandGroup } from './command.ts';
import { withRegistry } from './registry.ts';

const vkey: Action = {
  usage: 'evidence vkey [--json]',
  details: [
    'prints the verifier keys that checkpoints are signed with now, the newest first: what whoever checks needs.',
    'Tell them to others by another way than the service itself.',
  ],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }) => {
      const { keys } = await execute({ kind: 'GetLog' });
      if (keys.length === 0)
        throw new Error('the evidence log has no key yet: the first artseal serve makes it');
      for (const { vkey, addedAtS, endsAtS } of keys.filter(({ isRetired }) => !isRetired))
        terminal.print(words.has('json') ? JSON.stringify({ vkey, addedAtS, endsAtS }) : vkey);
    }),
};

/** `artseal evidence` */
export const evidence: CommandGroup = {
  summary: 'tell and change what the evidence log is signed with',
  actions: [vkey],
  details: [],
};
