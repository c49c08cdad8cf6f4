import { cpSync, lstatSync, readdirSync } from 'node:fs';

/** Copies a folder, such as the data folder of a running service, without the sockets in it, which cannot be copied. */
export function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !lstatSync(path).isSocket() });
}

/** The names of the files of a folder that can be read: of all but sockets. */
export function readableNames(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isSocket())
    .map(({ name }) => name);
}
