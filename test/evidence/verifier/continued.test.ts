import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkContinued, createPublishedLog, readCheckpoint } from '../../../src/evidence/verifier/index.ts';
import { smallLog } from './small-log.ts';
import { publicationOf } from './small-publication.ts';

const log = smallLog(599);
const tree = log.tree();
const flipped = (root: Buffer) => Buffer.from(root.map((byte, at) => (at === 0 ? byte ^ 1 : byte)));
const checkpointOf = (size: number, root = tree.root(size)) =>
  readCheckpoint(log.checkpoint(size, root), 'it');

for (const size of [1, 2, 7, 8, 255, 256, 257, 512, 513, 600])
  test(`the tiles of ${size} leaves show which checkpoints they continue`, async () => {
    const files = publicationOf(log, size);
    const published = createPublishedLog(async (path) => files.get(path));
    const newest = checkpointOf(size);
    const olderSizes = [0, 1, 2, 3, 64, 255, 256, 257, 511, 512, size - 1].filter((older) => older < size);
    for (const older of new Set(olderSizes)) {
      const what = `${older} to ${size}`;
      await checkContinued(published, newest, checkpointOf(older), what);
      const others = [
        [newest, checkpointOf(older, flipped(tree.root(older)))],
        [checkpointOf(size, flipped(tree.root(size))), checkpointOf(older)],
      ] as const;
      for (const [newer, seen] of others)
        await assert.rejects(checkContinued(published, newer, seen, what), { kind: 'FORKED' }, what);
    }
  });
