import { treeHashBytes } from '../../domain/merkle.ts';
import { unavailable } from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import type { Execute } from '../../store/store.ts';
import { leafBytesMax, placePath, tileWidth } from '../formats/tree.ts';
import type { Publication } from './signer.ts';

/** The log as immutable files: C2SP tlog-tiles. */

/**
 * Bytes of tiles in memory: the full tiles and entries of some 75,000 leaves. Responses share them. Otherwise clients that
 * read no response, and need no key, would keep a copy for each.
 */
const cacheBytesMax = 16 * 1_048_576;

/** A tile by its name. */
interface Tile {
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

interface TileDependencies {
  /** Throws UNAVAILABLE if too many read at the same time. */
  readonly execute: Execute;
  readonly publication: Pick<Publication, 'current'>;
  /** Whether other instances publish the log, too. */
  readonly isShared: boolean;
}

/** Makes the function that reads the newest kept checkpoint, which another instance may have published; undefined if there is no other. */
const createKeptReader =
  ({ execute, isShared }: TileDependencies) =>
  async () =>
    isShared ? (await execute({ kind: 'GetLog' })).newest : undefined;

/**
 * Makes the function that reads tiles from the store and caches them. It returns the bytes of a tile by its path after `tile/`;
 * undefined if the newest checkpoint of all instances does not cover it.
 */
export function createTileReader(dependencies: TileDependencies) {
  const { execute, publication } = dependencies;
  const readKept = createKeptReader(dependencies);
  /** By path, the least recently used tile first. Readers share a tile that is still being read, too. */
  const kept = new Map<string, { readonly reading: Promise<Uint8Array>; bytes: number }>();
  let bytesKept = 0;

  /** Whether a published checkpoint, of this or another instance, covers so many leaves. */
  async function isPublished(leaves: number): Promise<boolean> {
    if (leaves <= (publication.current()?.size ?? 0)) return true;
    return leaves <= ((await readKept())?.size ?? 0);
  }

  function keep(path: string, tile: Tile) {
    const reading = readTile(tile, execute);
    const entry = { reading, bytes: 0 };
    reading.then(
      ({ length }) => {
        if (kept.get(path) === entry) bytesKept += length;
        entry.bytes = length;
        dropOldest();
      },
      () => kept.get(path) === entry && kept.delete(path),
    );
    return entry;
  }

  function dropOldest(): void {
    for (const [oldest, { bytes }] of kept) {
      if (bytesKept <= cacheBytesMax) return;
      kept.delete(oldest);
      bytesKept -= bytes;
    }
  }

  return async (path: string): Promise<Uint8Array | undefined> => {
    const tile = parseTile(path);
    if (tile === undefined || !(await isPublished(leavesUpTo(tile)))) return undefined;
    const entry = kept.get(path) ?? keep(path, tile);
    kept.delete(path);
    kept.set(path, entry);
    return entry.reading;
  };
}

/** The size of the smallest tree that has the tile. */
function leavesUpTo({ level, place, width }: Tile): number {
  return (place * tileWidth + width) * tileWidth ** (level === 'entries' ? 0 : level);
}

async function readTile({ level, place, width }: Tile, execute: Execute): Promise<Uint8Array> {
  const from = place * tileWidth;
  // In a buffer of their own: short ones share one of 64 KiB, which the cache would keep alive.
  const owned = (bytes: Uint8Array) => Buffer.from(Uint8Array.from(bytes).buffer);
  if (level === 'entries') {
    const leaves = await execute({ kind: 'ReadLeaves', index: from, width });
    if (leaves?.length === width) return owned(entriesOf(leaves));
  } else {
    // A tile spans eight levels of the tree.
    const hashes = await execute({ kind: 'ReadSubtrees', level: level * 8, place: from, width });
    if (hashes?.length === width * treeHashBytes) return owned(hashes);
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
export function createOpenReads(execute: Execute): Execute {
  const { concurrent, queued } = openReadLimits;
  const limit = createKeyedLimit<'read'>({ perKey: concurrent });
  let reads = 0;
  return async (command) => {
    if (reads >= concurrent + queued)
      throw unavailable('Too many calls without a signature are waiting. Try again in a moment.');
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

/** Creates the published part of the log. */
export function createPublicLog(dependencies: LogDependencies) {
  const { publication } = dependencies;
  const readKept = createKeptReader(dependencies);
  return {
    /**
     * Reads the newest checkpoint, a signed note; undefined before the first one. It also reads what another instance has published
     * since, so that a caller of several instances never gets a smaller one than before. While the store cannot be used, it returns
     * that of this instance.
     */
    checkpoint: async (): Promise<string | undefined> => {
      const kept = await readKept().catch(() => undefined);
      const current = publication.current();
      return (kept?.size ?? 0) > (current?.size ?? 0) ? kept?.note : current?.note;
    },
    verifierKeys: publication.verifierKeys,
    tile: createTileReader(dependencies),
  };
}

interface LogDependencies extends TileDependencies {
  readonly publication: Pick<Publication, 'current' | 'verifierKeys'>;
}
