import { cpSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { projectFolder } from './artseal-command.ts';

const notCopied = ['node_modules', 'data', 'dist', '.git'];

/** Copies the project to a folder that is not there yet, with the packages of this one: what is built there is built from it. */
export function copyProject(folder: string): void {
  cpSync(projectFolder, folder, { recursive: true, filter: (path) => !notCopied.includes(basename(path)) });
  symlinkSync(join(projectFolder, 'node_modules'), join(folder, 'node_modules'));
}
