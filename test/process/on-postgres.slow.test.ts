import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { testFile, whileAlive } from '../shared/file.ts';
import { engineVariable } from '../support/engine.ts';
import { skipUnlessPostgres } from '../support/postgres.ts';

const aboutFiles = 'its subject are the files of SQLite, and commands that PostgreSQL has in their place';
const aboutThread = 'its subject is the thread of the store, which SQLite has alone';
const withoutStore = 'its subject uses no store';

/** The files of this folder that do not run on PostgreSQL, and why. A single test says it with `skipOnPostgres`. */
const onSqliteAlone: Readonly<Record<string, string>> = {
  'backup.slow': aboutFiles,
  backup: aboutFiles,
  'damaged-database.slow': aboutFiles,
  'foreign-lock': aboutFiles,
  'replaced-file': aboutFiles,
  'kept-memory.slow': aboutThread,
  'lost-store.slow': aboutThread,
  'bench.slow': 'its servers have settings of their own',
  'binary.slow': 'its executable has settings of its own',
  'documents.slow': 'the documents begin with SQLite',
  'certificate.slow': 'its subject are the files that it makes',
  'notices.slow': 'a run that was killed blocks the next one for minutes, since another instance may send',
  'command-connections.slow': 'it waits for minutes, and its subject is the admin socket',
  'evidence-document.slow': withoutStore,
  'log-format.slow': withoutStore,
  'own-network.slow': withoutStore,
  'protos.slow': withoutStore,
  'runtime.slow': withoutStore,
  'stripe-mock.slow': withoutStore,
  tls: withoutStore,
  'tls.slow': withoutStore,
  verify: withoutStore,
  'try-page.slow': withoutStore,
  'verify-page.slow': withoutStore,
  'postgres.slow': 'it runs on PostgreSQL by itself',
  'postgres-health.slow': 'it runs on PostgreSQL by itself',
  'postgres-instances.slow': 'it runs on PostgreSQL by itself',
  'move.slow': 'it uses both engines',
  'on-postgres.slow': 'it runs the others',
};

const files = globSync('*.test.ts', { cwd: import.meta.dirname }).map((file) => basename(file, '.test.ts'));

test('the files that do not run on PostgreSQL exist', () => {
  assert.deepEqual(
    Object.keys(onSqliteAlone).filter((file) => !files.includes(file)),
    [],
  );
});

const { ARTSEAL_TEST_KILLS: kills = '1' } = process.env;
const skip = skipUnlessPostgres();
if (skip) test('the other files', { skip });
else {
  process.env[engineVariable] = 'postgres';
  await whileAlive(async () => {
    for (const file of files.filter((name) => !(name in onSqliteAlone)).sort()) {
      // The other kill tests kill a few times: fifty kills in each take ten minutes.
      if (file === 'durability') process.env.ARTSEAL_TEST_KILLS = kills;
      else delete process.env.ARTSEAL_TEST_KILLS;
      await testFile(join(import.meta.dirname, `${file}.test.ts`));
    }
  });
}
