import { Refusal } from '../src/domain/reason.ts';
import { ConnectionLost, type Life } from './life.ts';
import { strikesMs } from './limits.ts';
import { everybody } from './trace.ts';
import { must } from './violation.ts';
import { sleep, type World } from './world.ts';

/**
 * Looks at the evidence log now and then, and remembers each tree, until told to stop. Salts are drawn at random, so roots
 * are no part of what a seed repeats: only sizes are noted.
 */
export async function runWatcher(world: World, life: () => Life, isOver: () => boolean): Promise<void> {
  const dice = world.dice.fork('watcher');
  while (!isOver()) {
    await sleep(world, dice.upTo(strikesMs.look));
    try {
      const current = life();
      const { size, root } = await current.during(() => current.execute({ kind: 'GetTree' }));
      world.witness.sawTree(size, Buffer.from(root).toString('hex'));
      world.trace.note(everybody, `the log is shown with ${size} leaves`);
      world.tally.count('trees shown');
    } catch (error) {
      if (error instanceof ConnectionLost) continue;
      must(error instanceof Refusal && error.reason === 'UNAVAILABLE', everybody, String(error));
    }
  }
}
