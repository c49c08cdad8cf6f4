import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { documentText } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';

const withinMs = 60_000;
/** The documented commands that put a new key before the old one, without the package. */
const addKey = [/^ +\{ printf 'k2:[^`]*\/master-key\.new$/m, /^ +mv .*\/master-key$/m]
  .map((command) => command.exec(documentText('docs/operate/security.md'))?.[0] ?? assert.fail(`${command}`))
  .join('\n')
  .replace('-m 0640 -g artseal-config', '-m 0600');
const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };
const newKey = (name: string): string => `${name}:${randomBytes(32).toString('hex')}`;

/** A deployment whose master keys are in a file, and commands on it. */
function deployment(t: TestContext) {
  const folder = temporaryFolder(t);
  const file = join(folder, 'keys');
  const env = { ARTSEAL_DATA_DIR: join(folder, 'data'), ARTSEAL_MASTER_KEY_FILE: file };
  const write = (...keys: readonly string[]) => writeFileSync(file, `${keys.join('\n')}\n`, { mode: 0o600 });
  const artseal = async (...words: readonly string[]) => {
    const { code, printed, errors } = await runHere(words, env);
    return { code, output: printed.join('\n'), errors: errors.join('\n') };
  };
  const issue = async (name: string) => {
    const words = ['key', 'create', '--name', name, '--tier', 'ENTERPRISE', '--monthly-quota', 'unlimited'];
    const { code, output, errors } = await artseal(...words, '--json');
    assert.equal(code, 0, errors);
    return JSON.parse(output) as { keyId: string; apiKey: string; apiSecret: string };
  };
  return { file, env, write, artseal, issue };
}

/** Sends SIGHUP. Returns the names of the master keys that the server then has. */
async function reload({ child, logLines }: WatchedService): Promise<readonly string[]> {
  const lines = () => logLines('master keys reloaded');
  const before = lines().length;
  process.kill(child.pid ?? assert.fail(), 'SIGHUP');
  const line = await eventually('master keys are reloaded', withinMs, () => lines()[before]);
  return JSON.parse(line).names;
}

test('the master key is rotated under traffic: no call fails, and the old key can go', {
  timeout: 300_000,
}, async (t) => {
  const { file, env, write, artseal, issue } = deployment(t);
  write(newKey('k1'));
  assert.equal((await artseal('init')).code, 0);
  const [busy, silent] = [await issue('busy'), await issue('silent')];
  const service = await serveWatched(t, env);

  let isOver = false;
  const statuses: number[] = [];
  const callOnAndOn = async () => {
    while (!isOver) statuses.push((await send(service.publicUrl, busy, filing)).status);
  };
  const traffic = callOnAndOn();
  const someCalls = async () => {
    const enough = statuses.length + 5;
    await eventually('further calls have a response', withinMs, () => statuses.length >= enough);
  };

  await someCalls();
  execFileSync('sh', ['-c', addKey.replaceAll('/etc/artseal/master-key', file)]);
  // Until it reads the file again, the server works with the key that it has.
  assert.match((await artseal('secrets', 're-encrypt')).output, /re-encrypted +0 under k1$/m);
  assert.deepEqual(await reload(service), ['k2', 'k1']);
  await someCalls();
  const between = await issue('between');
  const reencrypted = await artseal('secrets', 're-encrypt');
  assert.equal(reencrypted.code, 0, reencrypted.errors);
  // One of the secrets is the key of the evidence log.
  assert.match(
    reencrypted.output,
    /before +k1: 3, k2: 1\n.*3 under k2\nafter +k2: 4\nk1 opens no secret any more/,
  );
  await someCalls();
  const [k2 = ''] = readFileSync(file, 'utf8').split('\n');
  write(k2);
  const { code, output } = await artseal('reload');
  assert.deepEqual([code, output], [0, 'master keys           reloaded: k2']);
  await someCalls();
  for (const platform of [silent, between])
    assert.equal((await send(service.publicUrl, platform, filing)).status, 200, 'its first call');
  isOver = true;
  await traffic;
  assert.deepEqual([...new Set(statuses)], [200]);
  const again = await artseal('secrets', 're-encrypt', '--json');
  const seals = [{ masterKey: 'k2', secrets: 4, needed: 4 }];
  assert.deepEqual(JSON.parse(again.output), {
    masterKey: 'k2',
    reencrypted: 0,
    before: seals,
    after: seals,
  });

  assert.equal(await service.stop(), 0);
  assert.equal(existsSync(join(env.ARTSEAL_DATA_DIR, 'serving.json')), false);
  const next = await serveWatched(t, env);
  for (const platform of [busy, silent, between])
    assert.equal((await send(next.publicUrl, platform, filing)).status, 200);
  // The serving record of a killed process is not trusted.
  await next.stop('SIGKILL');
  write(newKey('k3'), k2);
  assert.match((await artseal('secrets', 're-encrypt')).output, /4 under k3/);
});
