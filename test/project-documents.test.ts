import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildInfo } from '../src/program/build-info.ts';

const projectFolder = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(projectFolder, file), 'utf8');

test('the changelog has an entry for the version, newest first, and one for what is not released yet', () => {
  const versions = Array.from(read('CHANGELOG.md').matchAll(/^## \[(.+?)\](?: - \d{4}-\d{2}-\d{2})?$/gm));
  assert.deepEqual(
    versions.slice(0, 2).map(([, version]) => version),
    ['Unreleased', buildInfo.version],
  );
});

test('every test that SECURITY.md names is there', () => {
  const named = Array.from(read('SECURITY.md').matchAll(/`(test\/[^`]+)`/g), ([, file = '']) => file);
  assert.ok(named.length > 0);
  for (const file of named) assert.ok(read(file).includes('test('), file);
});
