import { after, type TestContext } from 'node:test';

/** For what all tests of a file share: cleans up after the last of them. */
export const fileScope: Pick<TestContext, 'after'> = {
  after: (hook, options) => after(hook as () => void, options),
};
