import { cpSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { projectFolder } from './artseal-command.ts';

const notCopied = ['node_modules', 'data', 'dist', '.git'];

/** Copies the project to a new folder, with a link to its packages, so that it can be built there. */
export function copyProject(folder: string): void {
  cpSync(projectFolder, folder, { recursive: true, filter: (path) => !notCopied.includes(basename(path)) });
  symlinkSync(join(projectFolder, 'node_modules'), join(folder, 'node_modules'));
}
