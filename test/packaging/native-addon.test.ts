import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { type TestContext, test } from 'node:test';
import { writePrivately } from '../../src/packaging/native-addon.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const content = randomBytes(100_000);

/** Has files that are written for a short time go to a folder of the test's own. */
function inFolderOf(t: TestContext): string {
  const folder = temporaryFolder(t);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  assert.equal(tmpdir(), folder);
  return folder;
}

test('on Linux the file is reached through its descriptor and has no name', {
  skip: process.platform !== 'linux',
}, (t) => {
  const folder = inFolderOf(t);
  const path = writePrivately(content, 'linux');
  assert.match(path, /^\/proc\/self\/fd\/\d+$/);
  assert.deepEqual(readFileSync(path), content);
  assert.equal(statSync(path).nlink, 0);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), []);
});

test('elsewhere it is in a folder that nobody else can look into', (t) => {
  inFolderOf(t);
  const path = writePrivately(content, 'darwin');
  assert.deepEqual(readFileSync(path), content);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
});
