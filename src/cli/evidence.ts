import { mintLogKey, signsAt } from '../tlog/signing-keys.ts';
import { localActor } from './actor.ts';
import { type Action, type CommandGroup, UsageError, type Words } from './command.ts';
import { secondsOf } from './instant.ts';
import { withRegistry } from './registry.ts';
import { refuseUnknownToServing } from './sealing.ts';

const noKey = 'the evidence log has no key yet: the first artseal serve makes it';

const vkey: Action = {
  usage: 'evidence vkey [--json]',
  details: [
    'prints the verifier keys that checkpoints are signed with now, the newest first: what whoever checks needs.',
    'Tell them to others by another way than the service itself.',
  ],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }) => {
      const { keys } = await execute({ kind: 'GetLog' });
      if (keys.length === 0) throw new Error(noKey);
      for (const { vkey, addedAtS, endsAtS } of keys.filter((key) => signsAt(key, nowS())))
        terminal.print(words.has('json') ? JSON.stringify({ vkey, addedAtS, endsAtS }) : vkey);
    }),
};

/** How long the keys before sign on beside a new one. */
const overlapDefault = '30d';
const overlapMaxS = 366 * 86_400;

const rotateKey: Action = {
  usage: 'evidence rotate-key [--overlap DURATION] [--reason TEXT] [--json]',
  details: [
    'has a new key sign from now on, and prints its verifier key. Those before sign beside it for 30d unless --overlap says',
    'otherwise (90m, 12h, 7d; 0s for a key that somebody else has), then never again: their seeds are erased.',
    'A running server honours it within a second or two.',
  ],
  run: (words, terminal) => {
    const overlapS = overlapOf(words);
    return withRegistry(terminal, async (registry, { dataDir }) => {
      const { execute, keyRing } = registry;
      refuseUnknownToServing(dataDir, registry);
      const by = localActor(words, terminal);
      const name = (await execute({ kind: 'GetLog' })).names.at(-1);
      if (name === undefined) throw new Error(noKey);
      const key = mintLogKey(name.origin, keyRing, by.atS);
      const othersEndAtS = by.atS + overlapS;
      await execute({ kind: 'RotateLogKey', by, key, endsAtS: othersEndAtS });
      const { vkey } = key;
      if (words.has('json')) return terminal.print(JSON.stringify({ vkey, othersEndAtS }));
      terminal.print(vkey);
      terminal.print(`Those before sign until ${new Date(othersEndAtS * 1000).toISOString()}.`);
      terminal.print('Tell the new one to all who check the log, by another way than the service itself.');
    });
  },
};

function overlapOf(words: Words): number {
  const text = words.text('overlap') ?? overlapDefault;
  const seconds = secondsOf(text);
  if (seconds !== undefined && seconds <= overlapMaxS) return seconds;
  throw new UsageError(`takes --overlap as in 90m, 12h or 30d, of 366d at most, not '${text}'`);
}

const nowS = (): number => Math.floor(Date.now() / 1000);

/** `artseal evidence` */
export const evidence: CommandGroup = {
  summary: 'tell and change what the evidence log is signed with',
  actions: [vkey, rotateKey],
  details: ['What the log is, and when it is not signed: docs/operations.md.'],
};
