import { createReadStream, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { syncFolder } from '../store/sqlite/durable-files.ts';

/**
 * The bytes of a file, or of standard input for `-`: what is behind so many is not read, but for one that shows it. Throws an
 * Error that names the file.
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
    // What the system says of an open file names none.
    throw path === undefined ? new Error(`${file} cannot be read: ${message}.`) : error;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax + 1);
}

/** Puts other content in the place of that of a file, so that after a failure or a crash either the old one is there or the new one. */
export function replaceFile(file: string, content: string | Uint8Array): void {
  const draft = `${file}.${process.pid}.draft`;
  try {
    writeFileSync(draft, content, { flush: true });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(resolve(file)));
}
