import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { fileArtwork } from '../support/calls.ts';
import { documentText } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { keysInFile, newKey } from '../support/master-keys.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched } from '../support/watched-command.ts';

const withinMs = 60_000;
/** The documented commands that put a new key before the old one, without the package. */
const addKey = [/^ +\{ printf 'k2:[^`]*\/master-key\.new$/m, /^ +mv .*\/master-key$/m]
  .map((command) => command.exec(documentText('docs/operate/security.md'))?.[0] ?? assert.fail(`${command}`))
  .join('\n')
  .replace('-m 0640 -g artseal-config', '-m 0600');

test('the master key is rotated under traffic: no call fails, and the old key can go', {
  timeout: 300_000,
}, async (t) => {
  const { file, env: settings, write } = keysInFile(t);
  const env = { ...settings, ARTSEAL_DATA_DIR: temporaryFolder(t) };
  write(newKey('k1'));
  const artseal = artsealWith(env);
  const { platform } = await issueInto(env.ARTSEAL_DATA_DIR, 1, env);
  const service = await serveWatched(t, env);

  let isOver = false;
  const statuses: number[] = [];
  const callOnAndOn = async () => {
    while (!isOver) statuses.push((await fileArtwork(service, platform)).status);
  };
  const traffic = callOnAndOn();
  const someCalls = async () => {
    const enough = statuses.length + 5;
    await eventually('further calls have a response', withinMs, () => statuses.length >= enough);
  };

  await someCalls();
  execFileSync('sh', ['-c', addKey.replaceAll('/etc/artseal/master-key', file)]);
  // Until it reads the file again, the server works with the key that it has.
  assert.match(await artseal.text('secrets re-encrypt'), /re-encrypted +0 under k1$/m);
  service.child.kill('SIGHUP');
  const [line] = await eventually('master keys are reloaded', withinMs, () => {
    const lines = service.logged('master keys reloaded');
    return lines.length > 0 && lines;
  });
  assert.deepEqual(line.names, ['k2', 'k1']);
  await someCalls();
  // One of the secrets is the key of the evidence log.
  assert.match(
    await artseal.text('secrets re-encrypt'),
    /before +k1: 2\n.*2 under k2\nafter +k2: 2\nk1 decrypts no secret any more/,
  );
  const [k2 = ''] = readFileSync(file, 'utf8').split('\n');
  write(k2);
  assert.equal(await artseal.text('reload'), 'master keys           reloaded: k2');
  await someCalls();
  isOver = true;
  await traffic;
  assert.deepEqual([...new Set(statuses)], [200]);

  await service.stop('SIGKILL');
  const next = await serveWatched(t, env);
  assert.equal((await fileArtwork(next, platform)).status, 200);
  // The serving record of a killed process is not trusted.
  await next.stop('SIGKILL');
  write(newKey('k3'), k2);
  assert.match(await artseal.text('secrets re-encrypt'), /2 under k3/);
});
