import { join, resolve } from 'node:path';
import { runtimeFlags } from '../../src/packaging/runtime.ts';

/** The project's folder. */
export const projectFolder = join(import.meta.dirname, '..', '..');

/** The executable that ARTSEAL_BIN names, relative to the project's folder; undefined to run the sources. */
export const executable = process.env.ARTSEAL_BIN && resolve(projectFolder, process.env.ARTSEAL_BIN);

/** The program and arguments that start `artseal` with these words. */
export function artsealCommand(words: readonly string[]): [program: string, words: string[]] {
  return executable
    ? [executable, [...words]]
    : [process.execPath, [...runtimeFlags, join(projectFolder, 'src', 'main.ts'), ...words]];
}

/** `artseal` in a shell script that runs in the project's folder, with the runtime of the project on its PATH. */
export const artsealInShell = executable ? `'${executable}'` : 'node src/main.ts';
