import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { runSql, skipUnlessPostgres } from '../support/postgres.ts';

const skip = skipUnlessPostgres();

test('npm run dev:postgres ends and removes its data, also if it is killed', { skip }, async (t) => {
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const program = join(import.meta.dirname, '..', '..', 'build', 'dev-postgres.ts');
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    const url = /^ARTSEAL_DATABASE_URL='(.+)'$/m.exec(text)?.[1] ?? '';
    assert.deepEqual(await runSql(url, 'SHOW fsync'), [{ fsync: 'on' }]);
    const folder = /host=(.+)$/.exec(url)?.[1] ?? '';
    assert.equal(existsSync(folder), true);
    child.kill(signal);
    await once(child, 'exit');
    await eventually('its data is removed', 10_000, async () => !existsSync(folder));
    await assert.rejects(runSql(url, 'SELECT 1'));
  }
});
