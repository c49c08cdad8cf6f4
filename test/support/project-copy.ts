import { cpSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { projectFolder } from './artseal-command.ts';

const notCopied = ['node_modules', 'data', 'dist', '.git'];

/** Copies the project to a folder as a clone has it: without packages and data. */
export function cloneProject(folder: string): void {
  cpSync(projectFolder, folder, { recursive: true, filter: (path) => !notCopied.includes(basename(path)) });
}

/** The same with a link to its packages, so that it can be built there. */
export function copyProject(folder: string): void {
  cloneProject(folder);
  symlinkSync(join(projectFolder, 'node_modules'), join(folder, 'node_modules'));
}
