import { treeHashBytes } from '../../domain/merkle.ts';
import type { Execute } from '../../store/store.ts';
import type { Publication } from './publication.ts';

/** The tiles of C2SP tlog-tiles: the log as files that never change, from which anybody computes the tree anew. */

/** Hashes or entries of a full tile: what one of the level above is the root of. */
const fullWidth = 256;

/** How many bytes of tiles are kept in memory: the full tiles of some 75,000 leaves with their entries. */
const cacheBytesMax = 16 * 1_048_576;

/** The longest entry, in bytes: its length is told in two. */
const entryBytesMax = 0xffff;

/** A tile by its name. */
export interface Tile {
  /** Of hashes: 0 to 63. Entries lie below level 0. */
  readonly level: number | 'entries';
  /** Its place within the level, from 0. */
  readonly place: number;
  /** How many hashes or entries: 256 of a full tile, 1 to 255 of a partial one. */
  readonly width: number;
}

/** A level below 64 or `entries`, up to 18 digits of a place, and a width, each without zeros that say nothing. */
const form = /^(entries|[1-5]?[0-9]|6[0-3])\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** The tile that a path behind `tile/` names: undefined if it names none, or is not the one way to write it. */
export function parseTile(path: string): Tile | undefined {
  const named = form.exec(path);
  if (named === null) return undefined;
  const [, level = '', place = '', partial = fullWidth] = named;
  const tile: Tile = {
    level: level === 'entries' ? level : Number(level),
    place: Number(place.replaceAll(/[x/]/g, '')),
    width: Number(partial),
  };
  return tile.width <= fullWidth && tilePath(tile) === path ? tile : undefined;
}

/** The path of a tile behind `tile/`: 1234067 of level 0 is `0/x001/x234/067`. */
export function tilePath({ level, place, width }: Tile): string {
  const digits = String(place);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').replaceAll(/...(?!$)/g, 'x$&/');
  const partial = width === fullWidth ? '' : `.p/${width}`;
  return `${level}/${groups}${partial}`;
}

/** The published tiles. */
export interface Tiles {
  /** The bytes of a tile by its path behind `tile/`; undefined where the newest checkpoint covers none of that name. */
  read(path: string): Promise<Uint8Array | undefined>;
}

/** What tiles are read with. */
export interface TileDependencies {
  /** Refuses where too many read at a time. */
  readonly execute: Execute;
  readonly publication: Pick<Publication, 'current'>;
}

/** Reads tiles from the store, and keeps those that were asked for last. */
export function createTiles({ execute, publication }: TileDependencies): Tiles {
  const kept = createCache(cacheBytesMax);
  /** By their paths: whoever asks for what is being read waits for that. */
  const underWay = new Map<string, Promise<Uint8Array>>();

  async function readInto(path: string, tile: Tile): Promise<Uint8Array> {
    try {
      const bytes = onItsOwn(await readTile(tile, execute));
      kept.add(path, bytes);
      return bytes;
    } finally {
      underWay.delete(path);
    }
  }

  return {
    read: async (path) => {
      const tile = parseTile(path);
      if (tile === undefined || leavesUpTo(tile) > (publication.current()?.size ?? 0)) return undefined;
      const known = kept.find(path) ?? underWay.get(path);
      if (known !== undefined) return known;
      const reading = readInto(path, tile);
      underWay.set(path, reading);
      return reading;
    },
  };
}

/** How many leaves a tree needs to have the tile. */
function leavesUpTo({ level, place, width }: Tile): number {
  return (place * fullWidth + width) * fullWidth ** (level === 'entries' ? 0 : level);
}

async function readTile({ level, place, width }: Tile, execute: Execute): Promise<Uint8Array> {
  const from = place * fullWidth;
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

/** Each entry behind its length in two bytes, the larger first. */
function entriesOf(leaves: readonly string[]): Uint8Array {
  return Buffer.concat(
    leaves.flatMap((leaf) => {
      const entry = Buffer.from(leaf);
      if (entry.length > entryBytesMax) throw new Error(`A leaf has ${entry.length} bytes.`);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(entry.length);
      return [length, entry];
    }),
  );
}

/** A copy that is no part of a larger buffer: short ones are cut from one of 64 KiB, which would be kept with each of them. */
function onItsOwn(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.alloc(bytes.length);
  copy.set(bytes);
  return copy;
}

/** Keeps what was asked for last, up to so many bytes. */
function createCache(bytesMax: number) {
  /** The one that was asked for longest ago is the first. */
  const kept = new Map<string, Uint8Array>();
  let bytesKept = 0;
  return {
    find: (path: string): Uint8Array | undefined => {
      const bytes = kept.get(path);
      if (bytes === undefined) return undefined;
      kept.delete(path);
      kept.set(path, bytes);
      return bytes;
    },
    add: (path: string, bytes: Uint8Array): void => {
      kept.set(path, bytes);
      bytesKept += bytes.length;
      for (const [oldest, { length }] of kept) {
        if (bytesKept <= bytesMax) return;
        kept.delete(oldest);
        bytesKept -= length;
      }
    },
  };
}
