import { relative } from 'node:path';
import { test } from 'node:test';
import { claimedFiles } from './claims.ts';

// Loads test files one after the other into this process, so that the modules of the service are loaded once for many
// files. Each file is a test whose subtests are the tests of the file: its `after` hooks run when they have ended.
// The timer keeps the process alive while a test waits for a timer that does not, such as those of a store.
const keepAlive = setInterval(() => {}, 60_000);
for (const file of claimedFiles()) {
  await test(relative(process.cwd(), file), async (t) => {
    const { promise: loaded, resolve } = Promise.withResolvers<void>();
    t.before(() => loaded);
    await import(file).finally(resolve);
  });
}
clearInterval(keepAlive);
