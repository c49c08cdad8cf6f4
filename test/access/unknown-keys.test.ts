import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fileScope } from '../support/file-scope.ts';
import { startService } from '../support/service.ts';
import { statementPrototype } from '../support/statement.ts';

const { store, platform } = await startService(fileScope);
const known = await platform();
const { findKey } = store.admission;

/** How many statements the database is asked to run for a piece of work. */
async function statementsOf(t: TestContext, work: () => Promise<unknown>): Promise<number> {
  const verbs = ['run', 'get', 'all', 'iterate'] as const;
  const mocks = verbs.map((verb) => t.mock.method(statementPrototype, verb).mock);
  await work();
  for (const mock of mocks) mock.restore();
  return mocks.reduce((sum, mock) => sum + mock.callCount(), 0);
}

test('an unknown API key costs the database what a known one costs', async (t) => {
  await store.durable();
  assert.equal((await findKey(known.apiKey))?.keyId, known.keyId);
  const costs: number[] = [];
  for (const apiKey of [known.apiKey, 'ak_unknown', 'ak_unknown', 'ak_other', known.apiKey]) {
    costs.push(await statementsOf(t, () => findKey(apiKey)));
  }
  // Each asks whether another process changed a key.
  assert.deepEqual(costs, [1, 1, 1, 1, 1]);
});
