import { relative } from 'node:path';
import { test } from 'node:test';

/**
 * Loads a test file into this process, so that the modules of the service are loaded once for many files. The file is a test
 * whose subtests are the tests of the file: its `after` hooks run when they have ended.
 */
export function testFile(file: string): Promise<void> {
  return test(relative(process.cwd(), file), async (t) => {
    const { promise: loaded, resolve } = Promise.withResolvers<void>();
    t.before(() => loaded);
    await import(file).finally(resolve);
  });
}

/** Keeps the process alive while test files run: a test may wait for a timer that does not, such as those of a store. */
export async function whileAlive(run: () => Promise<unknown>): Promise<void> {
  const keepAlive = setInterval(() => {}, 60_000);
  await run();
  clearInterval(keepAlive);
}
