import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';

/** What all prepared statements of this process inherit from, for tests that watch or break them. */
export const statementPrototype: Sqlite.Statement = (() => {
  const memory = new Sqlite(':memory:');
  const prototype = Object.getPrototypeOf(memory.prepare('SELECT 1'));
  memory.close();
  return prototype;
})();

/** How SQLite goes about each statement that a command runs, as EXPLAIN QUERY PLAN tells it. */
export async function plansOf(t: TestContext, raw: Sqlite.Database, carryOut: () => Promise<unknown>) {
  const sources = new Set<string>();
  const watched = (['run', 'get', 'all'] as const).map((name) => {
    const execute = statementPrototype[name];
    return t.mock.method(statementPrototype, name, function (this: Sqlite.Statement, ...values: unknown[]) {
      // Other stores of this process may be at work as well.
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
