import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { writePrivately } from '../../src/packaging/native-addon.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('the addon is loaded through its descriptor and has no name', {
  skip: process.platform !== 'linux',
}, (t) => {
  const folder = temporaryFolder(t);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  assert.equal(tmpdir(), folder);
  const content = randomBytes(100_000);
  const path = writePrivately(content);
  assert.match(path, /^\/proc\/self\/fd\/\d+$/);
  assert.deepEqual(readFileSync(path), content);
  assert.equal(statSync(path).nlink, 0);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), []);
});
