import { ConnectionLost, type Instance } from './instance.ts';
import { strikesMs } from './limits.ts';
import { everybody } from './trace.ts';
import { sleep, type World } from './world.ts';

/**
 * Reads the newest checkpoint of the evidence log at random intervals until `isOver`. Salts are random, so a seed does
 * not repeat roots. The trace has only tree sizes.
 */
export async function runWatcher(
  world: World,
  instance: () => Instance,
  isOver: () => boolean,
): Promise<void> {
  const dice = world.dice.fork('watcher');
  while (!isOver()) {
    await sleep(world, dice.upTo(strikesMs.look));
    try {
      const current = instance();
      const checkpoint = await current.during(async () => current.checkpoint());
      if (checkpoint === undefined) continue;
      const { size, root } = checkpoint;
      world.witness.sawTree(size, Buffer.from(root).toString('hex'));
      world.trace.note(everybody, `the published checkpoint has size ${size}`);
      world.tally.count('checkpoints read');
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }
}
