import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { manualPage } from '../../build/manual.ts';
import { loadTasks } from '../../src/cli/commands.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('man formats the page without a warning', { skip: skipUnlessInstalled('man') }, async (t) => {
  const file = join(temporaryFolder(t), 'artseal.1');
  writeFileSync(file, manualPage(await loadTasks(), '2026-11-24'));
  for (const locale of ['C', 'C.UTF-8']) {
    const env = { PATH: process.env.PATH, LC_ALL: locale, MANWIDTH: '80' };
    const { stdout, stderr, status } = spawnSync('man', ['--warnings', '--local-file', file], {
      encoding: 'utf8',
      env,
    });
    assert.deepEqual([status, stderr], [0, '']);
    assert.match(stdout, /^NAME\n +artseal, artseal-admin - a registry/m);
    assert.match(stdout, /^ +artseal key list \[--json\]\n {14}Lists all keys/m);
  }
});
