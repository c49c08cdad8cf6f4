import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { never, openProvider, order } from './simulated-support.ts';

const module = (path: string) => JSON.stringify(join(import.meta.dirname, path));

test('a response of the simulated provider is durable after kill -9', async (t) => {
  const file = join(temporaryFolder(t), 'provider.db');
  const program = `
    import { writeSync } from 'node:fs';
    const { createSimulatedProvider } = await import(${module('../../src/payments/simulated/provider.ts')});
    const { instruction, never, order, startMs } = await import(${module('simulated-support.ts')});
    const clock = { nowMs: () => startMs, monotonicMs: () => 0, after: () => () => {} };
    const provider = createSimulatedProvider({ file: process.argv[1], clock });
    for (let n = 1; n <= 10_000; n += 1) {
      await provider.instruct(instruction('FREEZE', order(String(n))), never);
      writeSync(1, n + '\\n');
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
    if (output.length > 60) child.kill('SIGKILL');
  });
  assert.deepEqual(await once(child, 'close'), [null, 'SIGKILL']);
  const answered = output.split('\n').slice(0, -1);
  const { provider } = openProvider(t, file);
  for (const name of answered) {
    assert.equal((await provider.lookUp(order(name), never)).status, 'HELD');
  }
});

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
