import assert from 'node:assert/strict';
import { test } from 'node:test';
import { smallLog } from '../evidence/verifier/small-log.ts';
import { runCommand } from '../support/watched-command.ts';

const log = smallLog(300);
const good = log.bundle(7);

test('a bundle with a changed record is rejected, from standard input', async () => {
  const bundle = JSON.stringify({ ...good, record: good.record.replace('Qi Baishi', 'Qi Baish1') });
  const { code, stdout, stderr } = await runCommand(['verify', '-', ...log.keyWords], {}, bundle);
  assert.deepEqual([code, stdout], [4, ''], stderr);
  assert.match(stderr, /^NOT VERIFIED \(HASH_MISMATCH\): /);
});
