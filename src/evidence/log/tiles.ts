import { treeHashBytes } from '../../domain/merkle.ts';
import { unavailable } from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import type { Execute } from '../../store/store.ts';
import { leafBytesMax, placePath, tileWidth } from '../formats/tree.ts';
import type { Publication } from './publication.ts';

/** The log as immutable files: C2SP tlog-tiles. */

/** A tile by its name. */
export interface Tile {
  /** 0 to 63, or `entries`. */
  readonly level: number | 'entries';
  /** Its index within the level, from 0. */
  readonly place: number;
  /** Hashes or entries: 256 in a full tile, 1 to 255 in a partial one. */
  readonly width: number;
}

/** Level, index and width of a path. */
const form = /^(entries|[1-5]?[0-9]|6[0-3])\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** Reads the path of a tile after `tile/`; undefined if it is not the canonical path of a tile. */
export function parseTile(path: string): Tile | undefined {
  const named = form.exec(path);
  if (named === null) return undefined;
  const [, level = '', place = '', partial = tileWidth] = named;
  const tile: Tile = {
    level: level === 'entries' ? level : Number(level),
    place: Number(place.replaceAll(/[x/]/g, '')),
    width: Number(partial),
  };
  return tile.width <= tileWidth && tilePath(tile) === path ? tile : undefined;
}

/** Returns the path of a tile after `tile/`: 1234067 of level 0 is `0/x001/x234/067`. */
export function tilePath({ level, place, width }: Tile): string {
  const partial = width === tileWidth ? '' : `.p/${width}`;
  return `${level}/${placePath(place)}${partial}`;
}

/** What reading tiles needs. */
export interface TileDependencies {
  /** Throws UNAVAILABLE if too many read at the same time. */
  readonly execute: Execute;
  readonly publication: Pick<Publication, 'current'>;
}

/**
 * Makes the function that reads tiles from the store. It returns the bytes of a tile by its path after `tile/`; undefined if the
 * newest checkpoint does not cover it.
 */
export function createTileReader({ execute, publication }: TileDependencies) {
  return async (path: string): Promise<Uint8Array | undefined> => {
    const tile = parseTile(path);
    if (tile === undefined || leavesUpTo(tile) > (publication.current()?.size ?? 0)) return undefined;
    return readTile(tile, execute);
  };
}

/** The size of the smallest tree that has the tile. */
function leavesUpTo({ level, place, width }: Tile): number {
  return (place * tileWidth + width) * tileWidth ** (level === 'entries' ? 0 : level);
}

async function readTile({ level, place, width }: Tile, execute: Execute): Promise<Uint8Array> {
  const from = place * tileWidth;
  if (level === 'entries') {
    const leaves = await execute({ kind: 'ReadLeaves', index: from, width });
    if (leaves?.length === width) return entriesOf(leaves);
  } else {
    // A tile spans eight levels of the tree.
    const hashes = await execute({ kind: 'ReadSubtrees', level: level * 8, place: from, width });
    if (hashes?.length === width * treeHashBytes) return hashes;
  }
  throw new Error(`The evidence log lacks tile ${tilePath({ level, place, width })}, which was published.`);
}

/** Writes entries, each after its length in two bytes, big-endian. */
function entriesOf(leaves: readonly string[]): Uint8Array {
  return Buffer.concat(
    leaves.flatMap((leaf) => {
      const entry = Buffer.from(leaf);
      if (entry.length > leafBytesMax) throw new Error(`A leaf has ${entry.length} bytes.`);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(entry.length);
      return [length, entry];
    }),
  );
}

/** Unauthenticated reads of the store: how many run at the same time, and how many more wait. */
export const openReadLimits = { concurrent: 2, queued: 64 };

/**
 * Executes store requests of unauthenticated callers, a few at a time, so that they cannot delay signed calls. Throws
 * UNAVAILABLE if the queue is full.
 */
export function createOpenReads(execute: Execute, { concurrent, queued } = openReadLimits): Execute {
  const limit = createKeyedLimit<'read'>({ perKey: concurrent });
  let reads = 0;
  return async (command) => {
    if (reads >= concurrent + queued) throw unavailable('Too many read the evidence log at the moment.');
    reads += 1;
    const free = await limit.take('read');
    try {
      return await execute(command);
    } finally {
      reads -= 1;
      free();
    }
  };
}
