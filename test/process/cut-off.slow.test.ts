import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { DatabaseError } from '../../src/store/sqlite/location.ts';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { serveIssued } from '../support/issued.ts';
import { startService } from '../support/service.ts';

const pageBytes = 4_096;
const checked = /was not closed when it was served last, or was found damaged: it was checked/;

/** A data folder with a filing, whose server was stopped by a signal. */
async function served(t: TestContext, signal: NodeJS.Signals): Promise<string> {
  const server = await serveIssued(t);
  assert.equal((await fileArtwork(server, server.platform)).status, 200);
  await server.stop(signal);
  return server.dataDir;
}

test('a database is checked before the listeners open after kill -9, and not after a clean stop', async (t) => {
  const dataDir = await served(t, 'SIGKILL');
  const service = await startService(t, { dataDir });
  const line = service.logLines.find((each) => checked.test(each)) ?? assert.fail();
  assert.equal(typeof JSON.parse(line).ms, 'number');
  await service.close();
  const again = await startService(t, { dataDir, isStoreInThisThread: false });
  assert.equal(
    again.logLines.find((each) => checked.test(each)),
    undefined,
  );
});

test('a command checks the database after kill -9 as well, so the next start need not', async (t) => {
  const dataDir = await served(t, 'SIGKILL');
  const record = join(dataDir, 'serving.json');
  assert.ok(existsSync(record));
  await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).list('key list');
  assert.ok(!existsSync(record));
  const { logLines } = await startService(t, { dataDir });
  assert.ok(!logLines.some((line) => checked.test(line)));
});

test('a damaged database is rejected after kill -9, with the message of SQLite and what to do', async (t) => {
  const dataDir = await served(t, 'SIGKILL');
  const file = join(dataDir, 'artseal.db');
  // Pages in the WAL would hide those in the database.
  const raw = new Sqlite(file);
  raw.pragma('wal_checkpoint(TRUNCATE)');
  const page = Number(
    raw.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'log_leaf'").pluck().get(),
  );
  raw.close();
  assert.ok(!existsSync(`${file}-wal`), 'only the serving record shows that it was killed');
  const disk = openSync(file, 'r+');
  writeSync(disk, Buffer.alloc(pageBytes, 0xa5), 0, pageBytes, (page - 1) * pageBytes);
  closeSync(disk);
  const damaged = await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).errors(1, 'key list');
  assert.match(damaged, /artseal\.db is damaged: /);
  for (const isStoreInThisThread of [true, false]) {
    await assert.rejects(startService(t, { dataDir, isStoreInThisThread }), (error) => {
      assert.ok(error instanceof DatabaseError, `${error}`);
      assert.match(
        error.message,
        /artseal\.db is damaged: .*(page|malformed).*artseal restore.*database-damaged\.md/s,
      );
      return true;
    });
  }
});
