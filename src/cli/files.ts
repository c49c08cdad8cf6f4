import { createReadStream } from 'node:fs';

/**
 * Reads a file, or standard input for `-`, up to `bytesMax` + 1 bytes: a longer result means that the file is too long.
 * Throws an Error that names the file.
 */
export async function readBounded(file: string, bytesMax: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > bytesMax) break;
    }
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    if (code === 'EISDIR') throw new Error(`${file} is a folder, not a file.`);
    // An error while reading an open file has no path.
    throw path === undefined ? new Error(`cannot read ${file}: ${message}.`) : error;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax + 1);
}
