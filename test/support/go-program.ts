import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { projectFolder } from './artseal-command.ts';
import { installed } from './installed.ts';

/**
 * Builds a program of test/clients/go, such as `./bundle`, into a folder, without a download. `skip` is the reason if it cannot be
 * built, else false.
 */
export function buildGoProgram(
  folder: string,
  source: string,
): { readonly program: string; readonly skip: string | false } {
  const program = join(folder, 'program');
  const go = installed('go');
  if (go === undefined) {
    return {
      program,
      skip: 'Go is not installed: what it printed is in test/testdata/transparency-log.json',
    };
  }
  const { status, stderr } = spawnSync(go, ['build', '-o', program, source], {
    cwd: join(projectFolder, 'test', 'clients', 'go'),
    env: { ...process.env, GOPROXY: 'off', GOFLAGS: '-mod=readonly -buildvcs=false', GOTOOLCHAIN: 'local' },
    encoding: 'utf8',
  });
  if (status === 0) return { program, skip: false };
  if (/module lookup disabled|no required module|toolchain/.test(stderr)) {
    const hint = 'golang.org/x/mod is not in the module cache of Go (go -C test/clients/go mod download)';
    return { program, skip: `${hint}: ${stderr.trim()}` };
  }
  throw new Error(stderr);
}
