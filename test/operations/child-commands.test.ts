import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createBackupCommands } from '../../src/operations/backup/commands.ts';
import { inChild } from '../../src/operations/backup/schedule.ts';
import { type ChildCommand, createChildCommands } from '../../src/operations/child-commands.ts';
import { apiError } from '../support/rejected.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Child commands that run a script in place of the program. */
function scripted(t: Pick<TestContext, 'after'>, script: string) {
  const file = join(temporaryFolder(t), 'program.mjs');
  writeFileSync(file, script);
  const commands = createChildCommands([process.execPath, file]);
  t.after(commands.stop);
  return commands;
}

const command: ChildCommand = { words: ['work'], env: {} };
const unaborted = () => new AbortController().signal;
const printing = (...values: readonly object[]) =>
  values.map((value) => `console.log(${JSON.stringify(JSON.stringify(value))});`).join('\n');

test('a child gets the data folder and the temporary folder, and no other variable', async (t) => {
  const commands = scripted(t, 'console.log(JSON.stringify([process.argv.slice(2), process.env]))');
  const backups = createBackupCommands(commands, { dataDir: '/data', database: undefined });
  const [output] = await Array.fromAsync(backups.run(['rotate'], unaborted()));
  const env = { ARTSEAL_DATA_DIR: '/data', TMPDIR: tmpdir() };
  assert.deepEqual(output, [['backup', 'rotate', '--offline-copy', '--json', '--progress'], env]);
});

test('the schedule takes the last value that its child prints as the result', async (t) => {
  const rotated = {
    file: 'b.tar',
    takenAt: '2026-11-21T00:00:00.000Z',
    isNew: true,
    removed: [],
    broken: [],
  };
  const commands = scripted(t, printing({ progress: { step: 'copying', done: 1, total: 2 } }, rotated));
  const { runInTurn } = createBackupCommands(commands, { dataDir: '/data', database: undefined });
  const take = inChild(runInTurn, { folder: '/backups', keep: 1, everyMs: 60_000 });
  assert.deepEqual(await take(unaborted()), rotated);
});

test('a command that prints a result may fail, and one that prints none fails with its own words', async (t) => {
  const withResult = scripted(t, `${printing({ faults: ['one'] })} process.exitCode = 1;`);
  assert.deepEqual(await Array.fromAsync(withResult.run(command, unaborted())), [{ faults: ['one'] }]);
  const without = scripted(
    t,
    `${printing({ progress: {} })} console.error('artseal: b.tar is there already.'); process.exitCode = 1;`,
  );
  await assert.rejects(Array.fromAsync(without.run(command, unaborted())), {
    message: 'b.tar is there already.',
  });
  const backups = createBackupCommands(without, { dataDir: '/data', database: undefined });
  await assert.rejects(
    Array.fromAsync(backups.run(['b.tar'], unaborted())),
    apiError('BACKUP_FAILED', /^b\.tar is there already\.$/),
  );
  const killed = scripted(t, `${printing({ faults: [] })} process.kill(process.pid, 'SIGKILL');`);
  await assert.rejects(Array.fromAsync(killed.run(command, unaborted())), /work ended with SIGKILL/);
  const missing = createChildCommands([join(temporaryFolder(t), 'missing')]);
  await assert.rejects(Array.fromAsync(missing.run(command, unaborted())), /ENOENT/);
});

/** A program that prints a line, and cleans up at SIGTERM. Its folder is the first word. */
const untilStopped = `
import { writeFileSync } from 'node:fs';
const [folder] = process.argv.slice(2);
process.on('SIGTERM', () => {
  writeFileSync(folder + '/cleaned', '');
  process.exit(1);
});
setInterval(() => {}, 1_000);
${printing({ progress: {} })}`;

test('one command runs at a time: a second one is rejected, or waits for its turn', async (t) => {
  const commands = scripted(t, untilStopped);
  const folder = temporaryFolder(t);
  const leaving = new AbortController();
  const first = commands.run({ words: [folder], env: {} }, leaving.signal);
  await first.next();
  const second = commands.run(command, unaborted());
  await assert.rejects(second.next(), apiError('RATE_LIMITED', /is running: try again/));

  const givingUp = new AbortController();
  const impatient = commands.runInTurn(command, givingUp.signal).next();
  givingUp.abort();
  assert.deepEqual(await impatient, { done: true, value: undefined });

  const patient = commands.runInTurn({ words: [folder], env: {} }, leaving.signal).next();
  leaving.abort();
  assert.deepEqual(await first.next(), { done: true, value: undefined });
  assert.deepEqual(await patient, { done: true, value: undefined });
  assert.ok(existsSync(join(folder, 'cleaned')));
  const third = commands.run({ words: [folder], env: {} }, unaborted());
  assert.equal((await third.next()).done, false);
  await third.return();
});

test('a reader that leaves ends the command, even while it waits to be read', async (t) => {
  const flood = `process.on('SIGTERM', () => process.exit(1));
    setInterval(() => {}, 1_000);
    process.stdout.on('error', () => {});
    for (let n = 0; n < 100_000; n += 1) ${printing({ progress: { step: 'x'.repeat(100) } })}`;
  const commands = scripted(t, flood);
  const output = commands.run(command, unaborted());
  await output.next();
  await output.return();
  const after = commands.run(command, unaborted());
  assert.equal((await after.next()).done, false);
  await after.return();
});

test('a server that stops kills a command that does not clean up soon', async (t) => {
  const stubborn = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1_000); ${printing({ progress: {} })}`;
  const commands = scripted(t, stubborn);
  const output = commands.run(command, unaborted());
  await output.next();
  const over = output.next();
  await commands.stop();
  assert.deepEqual(await over, { done: true, value: undefined });
});
