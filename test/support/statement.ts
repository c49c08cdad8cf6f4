import Sqlite from 'better-sqlite3';

/** What all prepared statements of this process inherit from, for tests that watch or break them. */
export const statementPrototype: Sqlite.Statement = (() => {
  const memory = new Sqlite(':memory:');
  const prototype = Object.getPrototypeOf(memory.prepare('SELECT 1'));
  memory.close();
  return prototype;
})();
