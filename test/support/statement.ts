import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';

/** The prototype of all prepared statements of this process, for tests that watch or break them. */
export const statementPrototype: Sqlite.Statement = (() => {
  const memory = new Sqlite(':memory:');
  const prototype = Object.getPrototypeOf(memory.prepare('SELECT 1'));
  memory.close();
  return prototype;
})();

/** The query plan of each statement that a command runs. */
export async function plansOf(t: TestContext, raw: Sqlite.Database, carryOut: () => Promise<unknown>) {
  const sources = new Set<string>();
  const watched = (['run', 'get', 'all'] as const).map((name) => {
    const execute = statementPrototype[name];
    return t.mock.method(statementPrototype, name, function (this: Sqlite.Statement, ...values: unknown[]) {
      // This process may have other stores.
      if (this.database.name === raw.name) sources.add(this.source);
      return execute.apply(this, values);
    });
  });
  await carryOut();
  for (const { mock } of watched) mock.restore();
  const explained = [...sources].filter((source) => /^(select|update|delete)/i.test(source));
  assert.ok(explained.length > 0, 'the command executes statements');
  return explained.flatMap((source) => {
    const values = Array.from(source.matchAll(/\?/g), () => 1);
    const steps = raw.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${source}`).all(...values);
    return steps.map(({ detail }) => ({ source, detail }));
  });
}
