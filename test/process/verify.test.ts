import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { smallLog } from '../evidence/verifier/small-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/watched-command.ts';

const log = smallLog(300);
const good = log.bundle(7);

test('a bundle is verified with the key of the log alone', async (t) => {
  const file = join(temporaryFolder(t), 'evidence.json');
  writeFileSync(file, JSON.stringify(good));
  const { code, stdout, stderr } = await runCommand(['verify', file, ...log.keyWords], {
    ARTSEAL_DATA_DIR: '/dev/null/none',
    ARTSEAL_PUBLIC_ADDR: 'no address',
  });
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(
    stdout,
    /^VERIFIED: the filing AS-2026-000007 is in the log, which dates it 2026-11-21T01:15:07Z/,
  );
  assert.match(stdout, /^ {2}author {5}Qi Baishi$/m);
  assert.match(stdout, /^log log\.example\/artworks: leaf 7 of 301$/m);
});

test('a bundle with a changed record is rejected, also from standard input', async () => {
  const bundle = JSON.stringify({ ...good, record: good.record.replace('Qi Baishi', 'Qi Baish1') });
  const { code, stdout, stderr } = await runCommand(['verify', '-', ...log.keyWords], {}, bundle);
  assert.deepEqual([code, stdout], [4, ''], stderr);
  assert.match(stderr, /^NOT VERIFIED \(HASH_MISMATCH\): /);
});
