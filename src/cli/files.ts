import { createReadStream } from 'node:fs';

/** Reads a file, or standard input for `-`. Throws an Error that names the file, and `tooLong` if it has more bytes. */
export async function readBounded(
  file: string,
  bytesMax: number,
  tooLong = errorOfLength(file, bytesMax),
): Promise<Uint8Array> {
  let bytes: Uint8Array;
  try {
    bytes = await readStart(file === '-' ? process.stdin : createReadStream(file), bytesMax);
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    if (code === 'EISDIR') throw new Error(`${file} is a folder, not a file.`);
    // An error while reading an open file has no path.
    throw path === undefined ? new Error(`cannot read ${file}: ${message}.`) : error;
  }
  if (bytes.length > bytesMax) throw tooLong;
  return bytes;
}

/** The error of a file or response that has too many bytes. */
export const errorOfLength = (from: string, bytesMax: number): Error =>
  new Error(`${from} is longer than ${bytesMax} bytes`);

/** Reads a stream up to `bytesMax` + 1 bytes. A longer result means that it is too long. */
export async function readStart(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesMax: number,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > bytesMax) break;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax + 1);
}
