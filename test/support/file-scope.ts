import { after, type TestContext } from 'node:test';

/** Where a test goes for its cleaning up: for what all tests of a file share, after the last of them. */
export const fileScope: Pick<TestContext, 'after'> = {
  after: (hook, options) => after(hook as () => void, options),
};
