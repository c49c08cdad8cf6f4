/** Paths and sizes of tiles: c2sp.org/tlog-tiles. */

/** Hashes of a full tile, and leaves of a full entry bundle. */
export const tileWidth = 256;

/** Bytes of a leaf at most: entry bundles write its length in two bytes. */
export const leafBytesMax = 0xffff;

/** Writes the index of a tile: 1234067 is x001/x234/067. */
export function placePath(place: number): string {
  const digits = String(place);
  return digits.padStart(Math.ceil(digits.length / 3) * 3, '0').replaceAll(/...(?!$)/g, 'x$&/');
}
