import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Processes that replace the same file do not share a draft. */
const draftOf = (file: string): string => `${file}.${process.pid}.new`;

/** Creates or replaces a file; the content is on disk when this resolves. After a crash the old or the new content is there. */
export async function replaceFile(file: string, content: string | Uint8Array, mode?: number): Promise<void> {
  const draft = draftOf(file);
  try {
    await writeFile(draft, content, { mode, flush: true });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    throw error;
  }
  if (process.platform === 'win32') return;
  const folder = await open(dirname(resolve(file)), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** As `replaceFile`, but blocks until the content is on disk. */
export function replaceFileSync(file: string, content: string | Uint8Array, mode?: number): void {
  const draft = draftOf(file);
  try {
    writeFileSync(draft, content, { mode, flush: true });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(resolve(file)));
}

/** Returns when the names in a folder are on disk. Windows cannot sync folders. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const opened = openSync(folder, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
