import type { App } from '../../src/app/app.ts';
import type { PublishedCheckpoint } from '../../src/evidence/log/publication.ts';
import type { Publication } from '../../src/evidence/log/signer.ts';
import type { Execute } from '../../src/store/store.ts';
import type { ManualClock } from './clock.ts';
import { eventually } from './eventually.ts';
import { noteKey } from './note-keys.ts';

/** A publication that publishes when the test asks it to. */
export interface TestPublication extends Publication {
  /** Signs the current tree of a store. */
  publish(execute: Execute): Promise<PublishedCheckpoint>;
  /** How many calls wait for a checkpoint. */
  waiting(): number;
}

const origin = 'example.com/test-log';

/** Creates a publication with a key of its own and no checkpoint yet. */
export function createTestPublication(): TestPublication {
  const key = noteKey(origin);
  const waiting = new Set<() => void>();
  let newest: PublishedCheckpoint | undefined;
  return {
    current: () => newest,
    covering: async (leafIndex, withinMs) => {
      const covers = () => newest !== undefined && newest.size > leafIndex;
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => covers() && resolve();
      waiting.add(look);
      const timeout = setTimeout(resolve, withinMs);
      look();
      await promise;
      clearTimeout(timeout);
      waiting.delete(look);
      return covers() ? newest : undefined;
    },
    verifierKeys: () => [key.vkey],
    publish: async (execute) => {
      const { size, root } = await execute({ kind: 'GetTree' });
      const text = `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
      newest = { origin, size, root, note: key.sign(text) };
      for (const look of waiting) look();
      return newest;
    },
    waiting: () => waiting.size,
  };
}

/** Looks between two advances of the clock, which has to stay near the real clock that signs requests. */
const looksPerMove = 10;

/** Advances the clock of a service until its whole log is published. */
export async function publishAll(
  { publication, execute }: Pick<App, 'publication' | 'execute'>,
  clock: ManualClock,
): Promise<void> {
  let looks = 0;
  await eventually('all is published', 60_000, async () => {
    const { size } = await execute({ kind: 'GetTree' });
    if (size === (publication.current()?.size ?? 0)) return true;
    if (looks % looksPerMove === 0) clock.advance(1_000);
    looks += 1;
    return false;
  });
}
