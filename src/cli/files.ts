import { createReadStream } from 'node:fs';

/**
 * Reads a file, or standard input for `-`, up to `bytesMax` + 1 bytes: a longer result means that the file is too long.
 * Throws an Error that names the file.
 */
export async function readBounded(file: string, bytesMax: number): Promise<Uint8Array> {
  try {
    return await readStart(file === '-' ? process.stdin : createReadStream(file), bytesMax);
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    if (code === 'EISDIR') throw new Error(`${file} is a folder, not a file.`);
    // An error while reading an open file has no path.
    throw path === undefined ? new Error(`cannot read ${file}: ${message}.`) : error;
  }
}

/** Reads a stream up to `bytesMax` + 1 bytes. */
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
