import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/temporary-folder.ts';

const module = (path: string) => JSON.stringify(join(import.meta.dirname, path));

test('a busy simulated provider does not keep the process alive', (t) => {
  const program = `
    const { createSimulatedProvider } = await import(${module('../../src/payments/simulated/provider.ts')});
    const { systemClock } = await import(${module('../../src/operations/registry.ts')});
    const { instruction, order, never } = await import(${module('simulated-support.ts')});
    const notify = () => Promise.reject(new Error('not there'));
    const provider = createSimulatedProvider({ file: process.argv[1], clock: systemClock, notify });
    for (const buyerId of ['buyer', 'sim-slow', 'sim-silent', 'sim-lapse', 'sim-duplicate']) {
      void provider.instruct(instruction('FREEZE', order(buyerId, { buyerId })), never);
    }`;
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program, join(temporaryFolder(t), 'provider.db')],
    { timeout: 300_000, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
});
