import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fileScope } from '../support/file-scope.ts';
import { startService } from '../support/service.ts';
import { statementPrototype } from '../support/statement.ts';

const { store, platform } = await startService(fileScope);
const known = await platform();

/** The number of statements that the database runs for some work. */
function statementsOf(t: TestContext, work: () => unknown): number {
  const verbs = ['run', 'get', 'all', 'iterate'] as const;
  const mocks = verbs.map((verb) => t.mock.method(statementPrototype, verb).mock);
  work();
  for (const mock of mocks) mock.restore();
  return mocks.reduce((sum, mock) => sum + mock.callCount(), 0);
}

test('an unknown API key takes as many statements as a known one', (t) => {
  assert.equal(store.findKey(known.apiKey)?.keyId, known.keyId);
  const [ofKnown, ...ofOthers] = [known.apiKey, 'ak_unknown', 'ak_unknown', 'ak_other', known.apiKey].map(
    (apiKey) => statementsOf(t, () => store.findKey(apiKey)),
  );
  // Each lookup asks at most whether another process changed a key.
  assert.ok(ofKnown !== undefined && ofKnown <= 1);
  for (const ofOther of ofOthers) assert.equal(ofOther, ofKnown);
});
