import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runArtseal } from '../../src/cli/artseal.ts';
import {
  addFurtherMigration,
  further,
  makeEarlierDatabase,
  presentSchema,
} from '../store/further-migration.ts';
import { runHere } from '../support/artseal.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Runs `artseal` in this process; returns its output as text. */
async function run(words: readonly string[], env: Record<string, string>) {
  const { code, printed, errors } = await runHere(words, env);
  return { code, stdout: printed.join('\n'), stderr: errors.join('\n') };
}

test('a backup of a production has only its database, and the command names the master key to keep', async (t) => {
  const dataDir = temporaryFolder(t);
  const masterKeyFile = join(temporaryFolder(t), 'master-key');
  writeFileSync(masterKeyFile, `k7:${'7'.repeat(64)}\n`, { mode: 0o600 });
  const env = {
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY_FILE: masterKeyFile,
  };
  await run(['init'], env);
  await run(['key', 'create', '--name', 'Gallery', '--tier', 'TRIAL'], env);
  writeFileSync(join(dataDir, 'master-key'), `k7:${'7'.repeat(64)}\n`, { mode: 0o600 });
  const target = join(temporaryFolder(t), 'b.tar');
  const { stdout } = await run(['backup', target], { ARTSEAL_DATA_DIR: dataDir });
  assert.match(
    stdout,
    /THE MASTER KEY IS NOT IN IT\. Its secrets open only with these, which you must keep elsewhere: k7/,
  );
  assert.ok(!readFileSync(target).includes('7'.repeat(64)));
  const into = join(temporaryFolder(t), 'restored');
  const restored = await run(['restore', target, '--into', into, '--numbers-after', 'AS-1999-000001'], {});
  assert.match(restored.stderr, /is of no year since the backup was taken/);
  const good = await run(['restore', target, '--into', into], {});
  assert.match(good.stdout, /serve needs the master keys k7, which are not in a backup/);
  assert.deepEqual(readdirSync(into), ['artseal.db']);
});

test('upgrade --check reports the work with exit code 3, and 0 once it is done', async (t) => {
  const { dataDir, copy } = await makeEarlierDatabase(t);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const upgrade = (...words: string[]) => run(['upgrade', ...words], env);
  const check = await upgrade('--check');
  assert.equal(check.code, 3);
  for (const part of [`has schema ${presentSchema}`, `to run: ${further.name}`, copy, 'MB needed', 'about'])
    assert.ok(check.stdout.includes(part), `${part}: ${check.stdout}`);
  assert.ok(!existsSync(copy));
  assert.equal((await upgrade()).code, 0);
  assert.equal((await upgrade('--check')).code, 0);
});

test('a terminal shows the progress of a backup, and clears it afterwards', async (t) => {
  const dataDir = temporaryFolder(t);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  await run(['init'], env);
  const target = join(temporaryFolder(t), 'b.tar');
  const shown: string[] = [];
  const terminal = {
    env,
    print: () => {},
    printError: () => {},
    showProgress: (text: string) => shown.push(text),
  };
  for (const [words, first] of [
    [['backup', target], /^copying artseal\.db: \d+\.\d MB of \d+\.\d MB$/],
    [['backup', 'verify', target], /^unpacking: \d+\.\d MB of \d+\.\d MB$/],
  ] as const) {
    shown.length = 0;
    assert.equal(await runArtseal([...words], terminal), 0);
    assert.match(shown[0] ?? '', first);
    assert.equal(shown.at(-1), '');
  }
});

test('upgrade --check says that a server runs on the database', async (t) => {
  const { dataDir } = await startService(t);
  addFurtherMigration(t);
  const { stdout } = await run(['upgrade', '--check'], { ARTSEAL_DATA_DIR: dataDir });
  assert.match(stdout, /a server runs on it: stop it first/);
});
