import assert from 'node:assert/strict';
import { copyFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { EvidenceLogError } from '../../../src/evidence/log/agreement.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { forge } from './forgery.ts';
import { keepIn, keptIn, type Publishing, startPublishing } from './publishing.ts';

const databaseIn = (dataDir: string) => join(dataDir, 'artseal.db');
const fileIn = (dataDir: string) => join(dataDir, 'log-checkpoint');

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

describe('a start at which the database and what was published do not agree is refused', () => {
  /** A folder as it was at the end, one as it was before some filings, one of a kill that lost the write-ahead log, and another log's. */
  let [newest, older, lostLog, others] = ['', '', '', ''];

  before(async () => {
    const t = fileScope;
    const first = await startPublishing(t);
    newest = first.dataDir;
    await first.file(3);
    await first.close();
    older = copyOf(t, newest);
    const second = await startPublishing(t, { dataDir: newest });
    await second.published(await second.file(4));
    lostLog = copyOf(t, newest);
    rmSync(`${databaseIn(lostLog)}-wal`);
    rmSync(`${databaseIn(lostLog)}-shm`);
    await second.close();
    const other = await startPublishing(t);
    await other.file();
    await other.close();
    others = other.dataDir;
  });

  function copyOf(t: Pick<TestContext, 'after'>, dataDir: string): string {
    const copy = join(temporaryFolder(t), 'data');
    copyFolder(dataDir, copy);
    return copy;
  }

  async function refused(t: TestContext, dataDir: string, message: RegExp, env = {}): Promise<void> {
    await assert.rejects(startPublishing(t, { dataDir, env }), (error) => {
      assert.ok(error instanceof EvidenceLogError, String(error));
      assert.match(error.message, message);
      assert.match(error.message, /artseal evidence fork --accept|move the file away/);
      return true;
    });
  }

  test('an older copy of the database', async (t) => {
    const dataDir = copyOf(t, newest);
    copyFileSync(databaseIn(older), databaseIn(dataDir));
    await refused(
      t,
      dataDir,
      /^the database is behind what was published: it has 5 leaves, .* has a checkpoint of 9\./,
    );
  });

  test('a database that lost its write-ahead log', async (t) => {
    await refused(
      t,
      lostLog,
      /^the database is behind what was published: it has 5 leaves, .* has a checkpoint of 9\..*write-ahead log/,
    );
  });

  test('a filing that was forged, with all that is computed of it', async (t) => {
    const dataDir = copyOf(t, newest);
    forge(dataDir);
    await refused(
      t,
      dataDir,
      /^the database does not agree with what was published: the tree of its first 9 leaves has the root [0-9a-f]{64}, /,
    );
  });

  test('a forged filing under more filings than were published', async (t) => {
    const dataDir = copyOf(t, newest);
    copyFileSync(fileIn(older), fileIn(dataDir));
    clearCheckpoints(dataDir);
    forge(dataDir);
    await refused(t, dataDir, /the tree of its first 5 leaves has the root /);
  });

  test('the file of another log', async (t) => {
    const dataDir = copyOf(t, newest);
    copyFileSync(fileIn(others), fileIn(dataDir));
    await refused(
      t,
      dataDir,
      /log-checkpoint is of the log artseal\.invalid\/[0-9a-f]{16}, and this database is that of artseal/,
    );
  });

  test('a file that a key signed which the database does not know, under the same name', async (t) => {
    const dataDir = copyOf(t, newest);
    const origin = keptIn(dataDir).split('\n')[0] ?? '';
    const forger = await startPublishing(t, { env: { ARTSEAL_TLOG_ORIGIN: origin } });
    copyFileSync(fileIn(forger.dataDir), fileIn(dataDir));
    await refused(t, dataDir, /a checkpoint of 2 leaves that is signed by no key of this database/);
  });

  const damages: readonly (readonly [string, (note: string) => string | Buffer])[] = [
    ['empty', () => ''],
    ['cut off', (note) => note.slice(0, -20)],
    ['another size', (note) => note.replace('\n9\n', '\n8\n')],
    ['another root', (note) => note.replace(/\n9\n.{4}/, '\n9\nAAAA')],
    ['a flipped bit in its signature', (note) => flipped(Buffer.from(note), -10)],
    ['a flipped bit in its text', (note) => flipped(Buffer.from(note), 3)],
    ['no text at all', () => Buffer.alloc(300, 0xff)],
    ['a large file', () => Buffer.alloc(2_000_000, 0x20)],
  ];
  for (const [what, damage] of damages)
    test(`a damaged file: ${what}`, async (t) => {
      const dataDir = copyOf(t, newest);
      writeFileSync(fileIn(dataDir), damage(keptIn(dataDir)));
      await refused(t, dataDir, /log-checkpoint (is damaged: |is of the log )/);
    });

  test('a checkpoint in the database that is damaged', async (t) => {
    const dataDir = copyOf(t, newest);
    const client = new Sqlite(databaseIn(dataDir));
    client.exec("UPDATE log_checkpoint SET note = substr(note, 1, instr(note, char(10))) || 'none'");
    client.close();
    await refused(t, dataDir, /^the checkpoint in the database is damaged: /);
  });

  test('no file', async (t) => {
    const dataDir = copyOf(t, newest);
    rmSync(fileIn(dataDir));
    await refused(t, dataDir, /log-checkpoint is missing, although a checkpoint of 9 leaves was published/);
  });

  test('an older file', async (t) => {
    const dataDir = copyOf(t, newest);
    copyFileSync(fileIn(older), fileIn(dataDir));
    await refused(t, dataDir, /a checkpoint of 5 leaves, and is not the newest one: one of 9 was published/);
  });

  test('a database that published nothing, beside a file', async (t) => {
    const { dataDir } = await startPublishing(t).then(async (service) => {
      await service.close();
      return service;
    });
    const client = new Sqlite(databaseIn(dataDir));
    client.exec(
      'DROP TRIGGER log_origin_is_kept; DELETE FROM log_origin; DELETE FROM log_key; DELETE FROM log_checkpoint',
    );
    client.close();
    await refused(t, dataDir, /with 2 leaves, and this database has published nothing/);
  });

  test('another origin in the settings', async (t) => {
    const origin = keptIn(newest).split('\n')[0] ?? '';
    const dataDir = copyOf(t, newest);
    const env = { ARTSEAL_TLOG_ORIGIN: 'log.example/artseal' };
    await refused(
      t,
      dataDir,
      new RegExp(`ARTSEAL_TLOG_ORIGIN is log\\.example/artseal, .* published as ${origin}`),
      env,
    );
    const same = await startPublishing(t, { dataDir, env: { ARTSEAL_TLOG_ORIGIN: origin } });
    assert.equal(same.publication.current()?.note, keptIn(newest));
  });

  test('none of it, with a file that is newer than what the database keeps: a kill came between the two', async (t) => {
    const dataDir = copyOf(t, newest);
    clearCheckpoints(dataDir);
    const { publication, published, file } = await startPublishing(t, { dataDir });
    assert.equal(publication.current()?.note, keptIn(newest));
    await published(await file());
  });
});

function clearCheckpoints(dataDir: string): void {
  const client = new Sqlite(databaseIn(dataDir));
  client.exec('DELETE FROM log_checkpoint');
  client.close();
}

function flipped(bytes: Buffer, at: number): Buffer {
  const place = at < 0 ? bytes.length + at : at;
  bytes[place] = (bytes[place] ?? 0) ^ 1;
  return bytes;
}

describe('while it serves, nothing is signed that does not agree with what was published', () => {
  /** How often it was logged, moving the clock on, that nothing can be signed. */
  async function refusals(service: Publishing, message: RegExp): Promise<void> {
    await eventually(String(message), timeoutMs, () => {
      service.clock.advance(1_000);
      return service.logLines.some(
        (line) => line.includes('no checkpoint of the evidence log') && message.test(line),
      );
    });
  }

  async function started(t: TestContext) {
    const service = await startPublishing(t);
    await service.published(await service.file(3));
    const before = service.publication.current();
    const stays = () => {
      assert.equal(service.publication.current(), before);
      assert.equal(
        service.logLines.filter((line) => line.includes('no checkpoint of the evidence')).length,
        1,
      );
    };
    return { service, stays, note: keptIn(service.dataDir) };
  }

  test('a forged filing', async (t) => {
    const { service, stays, note } = await started(t);
    forge(service.dataDir);
    await service.file();
    await refusals(service, /does not agree with what was published: the tree of its first 5 leaves/);
    // Filing goes on, and nothing of it is published.
    await service.file();
    service.clock.advance(5_000);
    stays();
    assert.equal(keptIn(service.dataDir), note);
  });

  test('leaves that are removed: nothing is filed either, and that is said once', async (t) => {
    const { service, stays, note } = await started(t);
    const client = new Sqlite(databaseIn(service.dataDir), { timeout: timeoutMs });
    client.exec('DROP TRIGGER log_leaf_is_kept; DELETE FROM log_leaf WHERE id > 1');
    client.close();
    await refusals(service, /The evidence log is not what it was: it had 5 leaves, and the database has 2/);
    await assert.rejects(service.file(), { reason: 'RECORD_DAMAGED' });
    service.clock.advance(5_000);
    stays();
    assert.equal(keptIn(service.dataDir), note);
  });

  test('a file that is removed; put back, it goes on', async (t) => {
    const { service, stays, note } = await started(t);
    renameSync(fileIn(service.dataDir), `${fileIn(service.dataDir)}.away`);
    const leaf = await service.file();
    await refusals(service, /log-checkpoint is missing/);
    stays();
    keepIn(service.dataDir, note);
    const covered = service.publication.covering(leaf, 600_000);
    await eventually('a checkpoint', timeoutMs, () => {
      service.clock.advance(1_000);
      return (service.publication.current()?.size ?? 0) > leaf;
    });
    assert.ok(await covered);
    assert.ok(service.logLines.some((line) => line.includes('are signed again')));
  });

  test('a file that is replaced by an older one', async (t) => {
    const { service, note } = await started(t);
    await service.published(await service.file());
    keepIn(service.dataDir, note);
    await service.file();
    await refusals(service, /a checkpoint of 5 leaves, and is not the newest one: one of 6 was published/);
  });
});
