import { readUtf8 } from '../formats/encoding.ts';
import { malformed } from '../formats/failure.ts';
import { emptyRoot, hashBytes, leafBytesMax, nodeHash, placePath, tileWidth } from '../formats/tree.ts';

/** Reads a published log: c2sp.org/tlog-tiles. */

/** Bytes of a checkpoint at most. */
const checkpointBytesMax = 512 * 1024;

/**
 * Reads a file of a log by its path below the log's prefix, such as `tile/0/x001/234`. Resolves to undefined if it does not
 * exist. Rejects if it has more than `bytesMax` bytes, or the network or the disk fails.
 */
export type ReadPublished = (path: string, bytesMax: number) => Promise<Uint8Array | undefined>;

/** See `createPublishedLog`. */
export type PublishedLog = ReturnType<typeof createPublishedLog>;

/** The files of a log. They are not verified. All reject with VerificationFailure MALFORMED if a file is missing or malformed. */
export function createPublishedLog(read: ReadPublished) {
  async function readWhole(path: string, bytesMax: number): Promise<Uint8Array> {
    const bytes = await read(path, bytesMax);
    if (bytes === undefined)
      throw malformed(`the log does not have ${path}, although its checkpoint says so`);
    return bytes;
  }

  /** Reads a partial tile, or the full one: a log may delete a partial tile once the full one exists. */
  async function readPart(path: string, width: number, bytesOfOne: number): Promise<Uint8Array> {
    const bytesMax = tileWidth * bytesOfOne;
    const partial = width < tileWidth ? await read(`${path}.p/${width}`, bytesMax) : undefined;
    return partial ?? readWhole(path, bytesMax);
  }

  return {
    /** The note of the newest checkpoint. */
    checkpoint: async (): Promise<string> => {
      const bytes = await read('checkpoint', checkpointBytesMax);
      if (bytes === undefined)
        throw malformed(
          'there is no checkpoint: this is not the address of a log, or the log has no entries yet',
        );
      return readUtf8(bytes, 'the checkpoint');
    },
    /** The first `width` hashes of a tile. */
    tile: async (level: number, place: number, width: number): Promise<readonly Uint8Array[]> => {
      const path = `tile/${level}/${placePath(place)}`;
      const bytes = await readPart(path, width, hashBytes);
      if (bytes.length !== width * hashBytes && bytes.length !== tileWidth * hashBytes) {
        throw malformed(`${path} has ${bytes.length} bytes, which are not ${width} hashes`);
      }
      return Array.from({ length: width }, (_, at) => bytes.subarray(at * hashBytes, (at + 1) * hashBytes));
    },
    /** The first `width` leaves of an entry bundle. */
    entries: async (place: number, width: number): Promise<readonly Uint8Array[]> => {
      const path = `tile/entries/${placePath(place)}`;
      return readEntries(await readPart(path, width, 2 + leafBytesMax), width, path);
    },
  };
}

/** Reads leaves, each after its length in two bytes. */
function readEntries(bytes: Uint8Array, width: number, path: string): readonly Uint8Array[] {
  const entries: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at + 2;
    at = start + 256 * (bytes[at] ?? 0) + (bytes[at + 1] ?? 0);
    if (at > bytes.length) throw malformed(`${path} ends within a leaf`);
    entries.push(bytes.subarray(start, at));
  }
  if (entries.length !== width && entries.length !== tileWidth) {
    throw malformed(`${path} has ${entries.length} leaves, not ${width}`);
  }
  return entries.slice(0, width);
}

/** Returns how many hashes a level of tiles has in a tree of that size. */
export function hashesOfLevel(level: number, size: number): number {
  return Math.floor(size / tileWidth ** level);
}

/**
 * Computes two roots of a log from the same tiles: that of the first `older` leaves, and that of the first `newer` leaves. If both
 * are the signed roots, the newer tree begins with the older one. Reads the tiles of a consistency proof (RFC 6962, section 2.1.2).
 */
export async function rootsFromTiles(
  log: PublishedLog,
  older: number,
  newer: number,
): Promise<{ readonly older: Uint8Array; readonly newer: Uint8Array }> {
  const tiles = new Map<string, Promise<readonly Uint8Array[]>>();

  function tile(level: number, place: number): Promise<readonly Uint8Array[]> {
    const name = `${level}/${place}`;
    const width = Math.min(tileWidth, hashesOfLevel(level, newer) - place * tileWidth);
    const found = tiles.get(name) ?? log.tile(level, place, width);
    tiles.set(name, found);
    return found;
  }

  /** Hashes the leaves from `start` to `end`. */
  async function hashOf(start: number, end: number): Promise<Uint8Array> {
    const width = end - start;
    const middle = start + largestPowerBelow(width);
    const isComplete = width === 1 || middle - start === end - middle;
    if (!isComplete) return nodeHash(await hashOf(start, middle), await hashOf(middle, end));
    const level = Math.floor(Math.log2(width) / 8);
    const first = start / tileWidth ** level;
    const hashes = await tile(level, Math.floor(first / tileWidth));
    const count = width / tileWidth ** level;
    return fold(hashes.slice(first % tileWidth, (first % tileWidth) + count));
  }

  /** Hashes the leaves from `start` to `older`, and those from `start` to `end`; `older` is after `start`. */
  async function rootsOf(start: number, end: number): ReturnType<typeof rootsFromTiles> {
    if (older >= end) {
      const hash = await hashOf(start, end);
      return { older: hash, newer: hash };
    }
    const middle = start + largestPowerBelow(end - start);
    const left = await rootsOf(start, middle);
    if (older <= middle) return { ...left, newer: nodeHash(left.newer, await hashOf(middle, end)) };
    const right = await rootsOf(middle, end);
    return { older: nodeHash(left.older, right.older), newer: nodeHash(left.newer, right.newer) };
  }

  return older === 0 ? { older: emptyRoot, newer: await hashOf(0, newer) } : rootsOf(0, newer);
}

/** Returns the root over hashes of one level. Their number is a power of two. */
export function fold(hashes: readonly Uint8Array[]): Uint8Array {
  const half = hashes.length / 2;
  if (half < 1) return hashes[0] ?? new Uint8Array();
  return nodeHash(fold(hashes.slice(0, half)), fold(hashes.slice(half)));
}

/** Returns the largest power of two less than a number; 1 if there is none. */
function largestPowerBelow(number: number): number {
  let power = 1;
  while (power * 2 < number) power *= 2;
  return power;
}
