import assert from 'node:assert/strict';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { printable } from '../../src/cli/command.ts';
import { databaseFile } from '../../src/store/sqlite/location.ts';
import { registryWithPlatform } from '../support/issued.ts';
import { runCommand } from '../support/watched-command.ts';

test('characters that control a terminal or reverse text are escaped', () => {
  assert.equal(printable('a\u001b[2Jb\u009bc\rd\u0007'), 'a\\u001b[2Jb\\u009bc\\u000dd\\u0007');
  assert.equal(printable('one\u202etwo\u2066three\u2028four'), 'one\\u202etwo\\u2066three\\u2028four');
});

test('other text stays as it is, with its lines and tabs', () => {
  const text = 'one\ntwo\r\nthree\tGalerie Müller 画廊 גלריה 👩‍🎨';
  assert.equal(printable(text), text);
});

test('the real command escapes an older name that reverses text, and its JSON has the whole name', async (t) => {
  const { env } = await registryWithPlatform(t);
  const name = 'Gallery\u202eyrellaG';
  const database = new Sqlite(databaseFile(env.ARTSEAL_DATA_DIR));
  database.prepare('UPDATE caller SET name = ? WHERE name = ?').run(name, 'platform-1');
  database.close();
  const { stdout } = await runCommand(['key', 'list', '--json'], env);
  assert.ok(stdout.includes('Gallery\\u202eyrellaG'), stdout);
  assert.equal(JSON.parse(stdout).caller, name);
});
