import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { createDatabase, skipUnlessPostgres, startCluster } from '../support/postgres.ts';

const skip = skipUnlessPostgres();

async function query(url: string, sql: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

test('databases are copies of a template, which is filled once', { skip }, async (t) => {
  let fills = 0;
  const template = async (url: string) => {
    fills += 1;
    await query(url, 'CREATE TABLE sample (n int)');
  };
  const [first, second] = await Promise.all([
    createDatabase(t, { template }),
    createDatabase(t, { template }),
  ]);
  assert.equal(fills, 1);
  await query(first, 'INSERT INTO sample VALUES (1)');
  assert.deepEqual(await query(first, 'SELECT * FROM sample'), [{ n: 1 }]);
  assert.deepEqual(await query(second, 'SELECT * FROM sample'), []);
});

test('a database is dropped after its test, once nobody is connected to it', { skip }, async (t) => {
  const cluster = await startCluster(t, { fsync: false });
  const exists = async (name: string) =>
    (await query(cluster.url('postgres'), `SELECT FROM pg_database WHERE datname = '${name}'`)).length > 0;
  const hooks: (() => unknown)[] = [];
  const url = await createDatabase({ after: (hook) => hooks.push(hook as () => unknown) }, { cluster });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const hook of hooks) await hook();
  await createDatabase(t, { cluster });
  const name = client.database ?? '';
  assert.equal(await exists(name), true);
  await client.end();
  // The server process of a connection ends a moment after it.
  await eventually('the database is dropped', 10_000, async () => {
    await createDatabase(t, { cluster });
    return !(await exists(name));
  });
});

test('a killed cluster has what was committed when it starts again', { skip }, async (t) => {
  const cluster = await startCluster(t, { fsync: false });
  const url = await createDatabase(t, { cluster });
  await query(url, 'CREATE TABLE sample AS SELECT 1 AS n');
  await cluster.kill();
  await assert.rejects(query(url, 'SELECT 1'));
  await cluster.start();
  assert.deepEqual(await query(url, 'SELECT * FROM sample'), [{ n: 1 }]);
});

test('npm run dev:postgres ends and removes its data, also if it is killed', { skip }, async (t) => {
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const program = join(import.meta.dirname, '..', '..', 'build', 'dev-postgres.ts');
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    const url = /^ARTSEAL_DATABASE_URL='(.+)'$/m.exec(text)?.[1] ?? '';
    assert.deepEqual(await query(url, 'SHOW fsync'), [{ fsync: 'on' }]);
    const folder = /host=(.+)$/.exec(url)?.[1] ?? '';
    assert.equal(existsSync(folder), true);
    child.kill(signal);
    await once(child, 'exit');
    await eventually('its data is removed', 10_000, async () => !existsSync(folder));
    await assert.rejects(query(url, 'SELECT 1'));
  }
});
