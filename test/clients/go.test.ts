import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { projectFolder } from '../support/artseal-command.ts';
import { fileScope } from '../support/file-scope.ts';
import { installed } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { smallLog } from '../verifier/small-log.ts';

const program = join(temporaryFolder(fileScope), 'vectors');

/** Why the program of test/clients/go cannot be run; false where it was built. Nothing is downloaded for it. */
function skip(): string | false {
  const go = installed('go');
  if (go === undefined)
    return 'Go is not installed: what it printed before is in test/testdata/transparency-log.json';
  const { status, stderr } = spawnSync(go, ['build', '-o', program, '.'], {
    cwd: join(projectFolder, 'test', 'clients', 'go'),
    env: { ...process.env, GOPROXY: 'off', GOFLAGS: '-mod=readonly -buildvcs=false', GOTOOLCHAIN: 'local' },
    encoding: 'utf8',
  });
  if (status === 0) return false;
  if (/module lookup disabled|no required module|toolchain/.test(stderr)) {
    return `golang.org/x/mod is not in Go's module cache (go -C test/clients/go mod download): ${stderr.trim()}`;
  }
  throw new Error(stderr);
}
const reason = skip();

test('golang.org/x/mod/sumdb/{tlog,note} print the vectors that are committed', { skip: reason }, () => {
  const { stdout } = spawnSync(program, { encoding: 'utf8' });
  assert.equal(
    stdout,
    readFileSync(join(projectFolder, 'test', 'testdata', 'transparency-log.json'), 'utf8'),
  );
});

/** What golang.org/x/mod says of a leaf of a log and of the growth of its tree. */
function check(changes: Readonly<Record<string, unknown>> = {}): [stdout: string, status: number | null] {
  const log = smallLog(300);
  const tree = log.tree();
  const hex = (hashes: readonly Buffer[]) => hashes.map((hash) => hash.toString('hex'));
  const claim = {
    vkeys: log.keys.map(({ vkey }) => vkey),
    note: log.checkpoint(),
    ...{ leaf: log.leaves[257], index: 257, path: hex(tree.inclusion(257, 301)) },
    older: { size: 100, root: tree.root(100).toString('hex'), path: hex(tree.consistency(100, 301)) },
    ...changes,
  };
  const { stdout, status } = spawnSync(program, ['check'], {
    input: JSON.stringify(claim),
    encoding: 'utf8',
  });
  return [stdout.trim(), status];
}

test('they verify note, inclusion and consistency of the log that the tests of the verifier write', {
  skip: reason,
}, () => {
  assert.deepEqual(check(), ['good', 0]);
  assert.deepEqual(check({ index: 256 }), ['invalid transparency proof', 1]);
});
