import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BackupProgress } from '../../../gen/artseal/v1/backup_pb.ts';
import { createBackupService } from '../../../src/api/services/backup-service.ts';
import { fileArtwork } from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { typedError } from '../../support/typed-clients.ts';

const backupDir = temporaryFolder(fileScope);
const service = await startService(fileScope, {
  env: { ARTSEAL_BACKUP_DIR: backupDir, ARTSEAL_BACKUP_EVERY: '20d', ARTSEAL_BACKUP_KEEP: '2' },
});
const { backups } = await service.operator();
await eventually('the backup of the start', 60_000, () =>
  service.logLines.some((line) => line.includes('a backup was taken')),
);

interface Response {
  readonly case?: string | undefined;
  readonly value?: unknown;
}

/** Reads a stream: the steps of its progress, then its result. */
async function read<R extends Response>(stream: AsyncIterable<{ readonly response: R }>) {
  const responses = (await Array.fromAsync(stream)).map(({ response }) => response);
  const result = responses.pop() ?? assert.fail('There was no response.');
  assert.ok(responses.every((response) => response.case === 'progress'));
  return { result, steps: responses.map(({ value }) => (value as BackupProgress).step) };
}

const ended = (stream: AsyncIterable<unknown>) => Array.fromAsync(stream);

/** test/http/connect/streams.test.ts has streams in every protocol. */
test('a backup is taken with its progress, and verified', async () => {
  const { json } = await fileArtwork(service, await service.platform());
  const { result: taken, steps } = await read(backups.createBackup({ file: 'one.tar' }));
  assert.equal(steps[0], 'copying artseal.db');
  assert.ok(taken.case === 'backup');
  const { file, environment, currency, filings, lastFilingNo, orders, masterKeys, holdsMasterKeys } =
    taken.value;
  assert.deepEqual(
    [file, environment, currency, filings, lastFilingNo, orders, masterKeys, holdsMasterKeys],
    [join(backupDir, 'one.tar'), 'sandbox', 'CNY', 1n, json.filingNo, 0n, ['main'], true],
  );
  const { result: verified } = await read(backups.verifyBackup({ file: 'one.tar' }));
  assert.ok(verified.case === 'verdict');
  assert.deepEqual([verified.value.backup, verified.value.faults], [taken.value, []]);

  const { message } = await typedError(ended(backups.createBackup({ file: 'one.tar' })), 'BACKUP_FAILED');
  assert.equal(message, `${join(backupDir, 'one.tar')} is there already: name another file.`);
  const none = await typedError(ended(backups.verifyBackup({ file: 'none.tar' })), 'BACKUP_FAILED');
  assert.equal(none.message, `${join(backupDir, 'none.tar')} does not exist: check the path.`);
});

/** Asserts that a call is rejected because of a field. */
async function assertInvalid(stream: AsyncIterable<unknown>, message: RegExp): Promise<void> {
  assert.match((await typedError(ended(stream), 'VALIDATION_FAILED')).message, message);
}

test('a token names nothing outside the folder of the backups, and removes none that the server keeps', async () => {
  const elsewhere = temporaryFolder(fileScope);
  writeFileSync(join(elsewhere, 'secret'), 'x');
  symlinkSync(join(elsewhere, 'secret'), join(backupDir, 'link.tar'));
  symlinkSync(elsewhere, join(backupDir, 'link'));
  for (const file of [join(elsewhere, 'b.tar'), '../b.tar', 'link/b.tar', '.b.tar', '-b.tar', 'b\0.tar']) {
    await assertInvalid(
      backups.createBackup({ file }),
      /^file must be a name in the folder of ARTSEAL_BACKUP_DIR/,
    );
    await assertInvalid(backups.verifyBackup({ file }), /^file must be a name in the folder/);
    await assertInvalid(backups.rotateBackups({ into: file, keep: 2 }), /^into must be a name in the folder/);
  }
  await assertInvalid(backups.verifyBackup({ file: 'link.tar' }), /must not be a symbolic link/);
  await assertInvalid(backups.rotateBackups({ into: 'link', keep: 2 }), /must not be a symbolic link/);
  const own = backups.createBackup({ file: 'artseal-999999-20261121T000000Z.tar' });
  await assertInvalid(own, /^file must not begin with artseal/);
  const few = backups.rotateBackups({ keep: 1 });
  await assertInvalid(few, /^keep must be an integer from 2 to 1000: a token cannot remove/);
  mkdirSync(join(backupDir, 'more'));
  await read(backups.rotateBackups({ into: 'more', keep: 2 }));
  assert.equal(readdirSync(join(backupDir, 'more')).length, 1);
  assert.deepEqual(readdirSync(elsewhere), ['secret']);
});

test('wrong numbers and missing names are rejected', async () => {
  await assertInvalid(backups.createBackup({}), /^file is required/);
  await assertInvalid(backups.verifyBackup({}), /^file is required/);
  await assertInvalid(backups.rotateBackups({ keep: 1_001 }), /^keep must be an integer from 2 to 1000/);
  const young = backups.rotateBackups({ keep: 2, ifOlderThanSeconds: 59 });
  await assertInvalid(young, /^ifOlderThanSeconds must be an integer from 60 to 1728000/);
});

/** test/operations/child-commands.test.ts has what the end of a call does. */
test('the end of its call ends each command', async () => {
  const { signal } = new AbortController();
  const signals: AbortSignal[] = [];
  const place = async () => 'a';
  const { operations } = createBackupService({
    backups: {
      places: { newFile: place, existingFile: place, folder: place },
      run: (_: unknown, given: AbortSignal) => {
        signals.push(given);
        return [];
      },
    },
  } as never);
  for (const { run } of operations.values())
    await ended(
      run({} as never, { principal: { kind: 'local' }, signal } as never) as AsyncIterable<unknown>,
    );
  assert.equal(signals.length, 3);
  assert.ok(signals.every((given) => given === signal));
});

test('without a folder for backups a token can name none', async (t) => {
  const { backups } = await (await startService(t)).operator();
  for (const stream of [
    backups.createBackup({ file: 'b.tar' }),
    backups.verifyBackup({ file: 'b.tar' }),
    backups.rotateBackups({ keep: 7 }),
  ])
    await assertInvalid(stream, /only if the server has a folder ARTSEAL_BACKUP_DIR: set it$/);
});
