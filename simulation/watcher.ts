import { ConnectionLost, type Instance } from './instance.ts';
import { strikesMs } from './limits.ts';
import { everybody } from './trace.ts';
import { sleep, type World } from './world.ts';

/**
 * Reads the newest checkpoint of the evidence log now and then, until `isOver`. Salts are random, so a seed does not repeat
 * roots: the trace has only sizes.
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
      const shown = await current.during(async () => current.checkpoint());
      if (shown === undefined) continue;
      const { size, root } = shown;
      world.witness.sawTree(size, Buffer.from(root).toString('hex'));
      world.trace.note(everybody, `a checkpoint is shown of ${size} leaves`);
      world.tally.count('checkpoints shown');
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }
}
