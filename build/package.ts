import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { builtCommit, packagedFiles, projectFolder } from './project.ts';

// Makes dist/artseal-<version>.tgz, the npm package. Node does not strip types inside node_modules, so tsc compiles them.

const compiled = join(projectFolder, 'dist', 'package');
const run = (command: string, ...words: string[]) =>
  execFileSync(command, words, { cwd: projectFolder, stdio: ['ignore', 'inherit', 'inherit'] });

rmSync(compiled, { recursive: true, force: true });
run('tsc', '--project', 'build');
const info = join(compiled, 'src', 'packaging', 'build-info.js');
const define = { ARTSEAL_COMMIT: JSON.stringify(builtCommit()) };
await build({ entryPoints: [info], outfile: info, allowOverwrite: true, define });
for (const path of packagedFiles) {
  mkdirSync(dirname(join(compiled, path)), { recursive: true });
  copyFileSync(join(projectFolder, path), join(compiled, path));
}
run('npm', 'pack', '--silent', '--pack-destination', 'dist');
