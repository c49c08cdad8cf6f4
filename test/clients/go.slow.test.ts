import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { smallLog } from '../evidence/verifier/small-log.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { fileScope } from '../support/file-scope.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { buildGoProgram, checkByGo } from './go-program.ts';

const { program, skip } = buildGoProgram(temporaryFolder(fileScope));

test('golang.org/x/mod/sumdb/{tlog,note} print the vectors that are committed', { skip }, () => {
  const { stdout } = spawnSync(program, { encoding: 'utf8' });
  assert.equal(
    stdout,
    readFileSync(join(projectFolder, 'test', 'testdata', 'transparency-log.json'), 'utf8'),
  );
});

test('they verify note, inclusion and consistency of the log that the tests of the verifier write', {
  skip,
}, () => {
  const log = smallLog(300);
  const tree = log.tree();
  const hex = (hashes: readonly Buffer[]) => hashes.map((hash) => hash.toString('hex'));
  const claim = {
    vkeys: log.keys.map(({ vkey }) => vkey),
    note: log.checkpoint(),
    ...{ leaf: log.leaves[257] ?? '', index: 257, path: hex(tree.inclusion(257, 301)) },
    older: { size: 100, root: tree.root(100).toString('hex'), path: hex(tree.consistency(100, 301)) },
  };
  assert.deepEqual(checkByGo(program, claim), ['good', 0]);
  assert.deepEqual(checkByGo(program, { ...claim, index: 256 }), ['invalid transparency proof', 1]);
});
