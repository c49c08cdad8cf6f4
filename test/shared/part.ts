import { relative } from 'node:path';
import { test } from 'node:test';
import { claimsVariable, runClaimed } from './claims.ts';

const claims = process.env[claimsVariable];
if (claims === undefined) throw new Error('Start test/shared/run.ts.');

// A test may wait for a timer that does not keep the process alive, such as those of a store.
const keepAlive = setInterval(() => {}, 60_000);
// Loads test files one after the other into this process, so that the modules of the service are loaded once for many
// files. Each file is a test whose subtests are the tests of the file: its `after` hooks run when they have ended.
await runClaimed(claims, (file) =>
  test(relative(process.cwd(), file), async (t) => {
    const { promise: loaded, resolve } = Promise.withResolvers<void>();
    t.before(() => loaded);
    await import(file).finally(resolve);
  }),
);
clearInterval(keepAlive);
