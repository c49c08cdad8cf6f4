import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printable } from '../../src/cli/printable.ts';
import { runCommand } from '../support/command.ts';
import { makeSandbox } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('what acts on a terminal or turns text around is spelled out', () => {
  assert.equal(printable('a\u001b[2Jb\u009bc\rd\u0007'), 'a\\u001b[2Jb\\u009bc\\u000dd\\u0007');
  assert.equal(printable('one\u202etwo\u2066three\u2028four'), 'one\\u202etwo\\u2066three\\u2028four');
});

test('any other text is as it was, its lines and tabs as well', () => {
  const text = 'one\ntwo\r\nthree\tGalerie Müller 画廊 גלריה 👩‍🎨';
  assert.equal(printable(text), text);
});

test('a name that turns text around reaches nobody by the real command, and JSON has it whole', async (t) => {
  const settings = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  await makeSandbox(settings.ARTSEAL_DATA_DIR);
  const name = 'Gallery\u202eyrellaG';
  const words = ['key', 'create', '--tier', 'TRIAL', '--name', name, '--json'];
  const { stdout } = await runCommand(words, settings);
  assert.ok(stdout.includes('Gallery\\u202eyrellaG'), stdout);
  assert.equal(JSON.parse(stdout).caller, name);
  const { stderr } = await runCommand(['key', 'create', '--tier', 'TRIAL', '--name', name], settings);
  assert.match(stderr, /--name is taken/);
  const { stdout: told } = await runCommand(['platform', 'list'], settings);
  assert.match(told, /^ACTIVE +TRIAL +1000 {2}Gallery\\u202eyrellaG$/m);
});
