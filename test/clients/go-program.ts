import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { projectFolder } from '../support/artseal-command.ts';
import { installed } from '../support/installed.ts';

/** A claim that golang.org/x/mod/sumdb/{tlog,note} check: `claim` of test/clients/go/main.go. */
export interface GoClaim {
  readonly vkeys: readonly string[];
  /** A checkpoint. */
  readonly note: string;
  readonly leaf: string;
  readonly index: number;
  /** Hashes in hex. */
  readonly path: readonly string[];
}

/**
 * Builds the program of test/clients/go into a folder, without a download. `skip` is the reason if it cannot be built, else
 * false.
 */
export function buildGoProgram(folder: string): { readonly program: string; readonly skip: string | false } {
  const program = join(folder, 'vectors');
  const go = installed('go');
  if (go === undefined) {
    return {
      program,
      skip: 'Go is not installed: what it printed is in test/testdata/transparency-log.json',
    };
  }
  const { status, stderr } = spawnSync(go, ['build', '-o', program, '.'], {
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

/** The output of the program for a claim, `good` or the fault, and its exit code. */
export function checkByGo(program: string, claim: GoClaim): [said: string, code: number | null] {
  const { stdout, status } = spawnSync(program, ['check'], {
    input: JSON.stringify(claim),
    encoding: 'utf8',
  });
  return [stdout.trim(), status];
}
