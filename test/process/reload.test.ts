import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { runHere } from '../support/artseal.ts';
import { tester } from '../support/audit-log.ts';
import { documentText } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveWatched, type WatchedService } from '../support/watched-command.ts';

const withinMs = 60_000;
/** How the page for operators puts a new key above the old one, without the package. */
const addKey = [/^ +\{ printf 'k2:[^`]*\/master-key\.new$/m, /^ +mv .*\/master-key$/m]
  .map((command) => command.exec(documentText('docs/operate/security.md'))?.[0] ?? assert.fail(`${command}`))
  .join('\n')
  .replace('-m 0640 -g artseal-config', '-m 0600');
const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };
const newKey = (name: string): string => `${name}:${randomBytes(32).toString('hex')}`;

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly what?: string;
  readonly why?: string;
  readonly names?: readonly string[];
  readonly status?: number;
}

const logged = ({ stderr }: WatchedService): LogLine[] =>
  stderr()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** A deployment whose master keys are in a file, and commands on it. */
async function deployment(t: TestContext) {
  const folder = temporaryFolder(t);
  const file = join(folder, 'keys');
  const env = { ARTSEAL_DATA_DIR: join(folder, 'data'), ARTSEAL_MASTER_KEY_FILE: file };
  const write = (...keys: readonly string[]) => writeFileSync(file, `${keys.join('\n')}\n`, { mode: 0o600 });
  const artseal = async (...words: readonly string[]) => {
    const { code, printed, errors } = await runHere(words, env);
    return { code, told: printed.join('\n'), errors: errors.join('\n') };
  };
  const issue = async (name: string) => {
    const words = ['key', 'create', '--name', name, '--tier', 'ENTERPRISE', '--monthly-quota', 'unlimited'];
    const { code, told, errors } = await artseal(...words, '--json');
    assert.equal(code, 0, errors);
    return JSON.parse(told) as { keyId: string; apiKey: string; apiSecret: string };
  };
  return { file, env, write, artseal, issue };
}

/** Sends SIGHUP and waits for what the log says of a part. */
async function reload(service: WatchedService): Promise<LogLine> {
  const what = 'master keys';
  const told = () => logged(service).filter((line) => line.what === what);
  const before = told().length;
  process.kill(service.child.pid ?? assert.fail(), 'SIGHUP');
  return eventually(`${what} are told of`, withinMs, () => told()[before]);
}

test('the master key is rotated under traffic: no call fails, and the old key can go', {
  timeout: 300_000,
}, async (t) => {
  const { file, env, write, artseal, issue } = await deployment(t);
  write(newKey('k1'));
  assert.equal((await artseal('init')).code, 0);
  const [busy, silent] = [await issue('busy'), await issue('silent')];
  const service = await serveWatched(t, env);

  let isOver = false;
  const statuses = new Map<number, number>();
  const traffic = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const { status } = await send(service.publicUrl, busy, filing);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  /** Waits until some calls more were answered. */
  const someCalls = async () => {
    const count = () => [...statuses.values()].reduce((sum, calls) => sum + calls, 0);
    const enough = count() + 20;
    await eventually('calls are answered', withinMs, () => count() >= enough);
  };

  await someCalls();
  execFileSync('sh', ['-c', addKey.replaceAll('/etc/artseal/master-key', file)]);
  for (const words of [
    ['secrets', 'reseal'],
    ['key', 'create', '--name', 'early', '--tier', 'TRIAL'],
    ['key', 'rotate', silent.keyId],
  ]) {
    const { code, errors } = await artseal(...words);
    assert.equal(code, 1);
    assert.match(errors, /does not have the master key k2 yet: run kill -HUP \d+,/, words.join(' '));
    assert.match(errors, new RegExp(`kill -HUP ${service.child.pid},`));
  }
  assert.deepEqual((await reload(service)).names, ['k2', 'k1']);
  await someCalls();
  const between = await issue('between');
  const resealed = await artseal('secrets', 'reseal');
  assert.equal(resealed.code, 0, resealed.errors);
  // One of them is the key of the evidence log.
  assert.match(
    resealed.told,
    /before +k1: 3, k2: 1\n.*3 under k2\nafter +k2: 4\nk1 opens no secret any more/,
  );
  await someCalls();
  const [k2 = ''] = readFileSync(file, 'utf8').split('\n');
  write(k2);
  assert.deepEqual((await reload(service)).names, ['k2']);
  await someCalls();
  for (const platform of [silent, between])
    assert.equal((await send(service.publicUrl, platform, filing)).status, 200, 'its first call');
  isOver = true;
  await Promise.all(traffic);
  assert.deepEqual([...statuses.keys()], [200]);
  const again = await artseal('secrets', 'reseal', '--json');
  const seals = [{ masterKey: 'k2', secrets: 4, needed: 4 }];
  assert.deepEqual(JSON.parse(again.told), { masterKey: 'k2', resealed: 0, before: seals, after: seals });

  assert.equal(await service.stop(), 0);
  assert.equal(existsSync(join(env.ARTSEAL_DATA_DIR, 'serving.json')), false);
  const next = await serveWatched(t, env);
  for (const platform of [busy, silent, between])
    assert.equal((await send(next.publicUrl, platform, filing)).status, 200);
  // What kill -9 leaves behind says nothing of a process that does not serve.
  await next.stop('SIGKILL');
  const k3 = newKey('k3');
  write(k3, k2);
  assert.match((await artseal('secrets', 'reseal')).told, /4 under k3/);
});

test('after the loss of a master key every platform is issued another key, and the service goes on', {
  timeout: 300_000,
}, async (t) => {
  const { env, write, artseal, issue } = await deployment(t);
  write(newKey('k1'));
  assert.equal((await artseal('init')).code, 0);
  const old = await issue('gallery');
  write(newKey('k2'));
  for (const words of [
    ['key', 'list'],
    ['key', 'rotate', old.keyId],
  ])
    assert.match((await artseal(...words)).errors, /with the key k1 of this database/);
  const reissued = await artseal('secrets', 'reissue', '--json');
  assert.equal(reissued.code, 0, reissued.errors);
  const { caller, replaced, keyId, apiKey, apiSecret } = JSON.parse(reissued.told);
  assert.deepEqual([caller, replaced], ['gallery', old.keyId]);
  assert.notEqual(keyId, old.keyId);
  assert.match((await artseal('secrets', 'reissue')).told, /nothing to replace/);
  const service = await serveWatched(t, env);
  assert.equal((await send(service.publicUrl, { apiKey, apiSecret }, filing)).status, 200);
  assert.equal((await send(service.publicUrl, old, filing)).status, 401);
  assert.match((await artseal('secrets', 'reissue')).errors, /the server runs: stop it first/);
});

test('a reload is all or nothing, and says what came of it', { timeout: 300_000 }, async (t) => {
  const { file, env, write, artseal, issue } = await deployment(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  assert.equal((await artseal('init')).code, 0);
  const platform = await issue('gallery');
  const service = await serveWatched(t, env);

  await t.test(
    'master keys stay as they were where the file is faulty, exposed, a pipe or too short',
    async () => {
      const refused = async (rule: RegExp) => {
        const { level, why = '' } = await reload(service);
        assert.equal(level, 50);
        assert.match(why, rule);
        assert.doesNotMatch(why, /[0-9a-f]{32}/);
      };
      write(k2, 'k1:0123');
      await refused(/ARTSEAL_MASTER_KEY_FILE cannot be used: entry 2/);
      write(k2);
      await refused(/does not open the secret of key_\w+ \(gallery\)/);
      write(k2, k1);
      chmodSync(file, 0o666);
      await refused(/chmod go-w/);
      renameSync(file, `${file}.kept`);
      execFileSync('mkfifo', ['-m', '600', file]);
      await refused(/no regular file/);
      renameSync(`${file}.kept`, file);
      chmodSync(file, 0o600);
      assert.equal((await send(service.publicUrl, platform, filing)).status, 200);
    },
  );

  await t.test(
    'a key sealed under a master key that is not known is refused in words, until it is',
    async () => {
      // As a command does that was made before there was a check, or on another machine.
      const registry = await openRegistry(readConfig(env), 'EXISTING');
      const agreement = { name: 'late', tier: 'TRIAL', monthlyQuota: undefined, unlimited: false } as const;
      const { key, apiSecret } = await registry.issuance.issueKey(agreement, tester);
      await registry.store.close();
      const late = { apiKey: key.apiKey, apiSecret };
      const answer = await eventually('the key is known', withinMs, async () => {
        const { status, json } = await send(service.publicUrl, late, filing);
        return status === 401 ? undefined : { status, json };
      });
      assert.deepEqual([answer.status, answer.json.code], [503, 'UNAVAILABLE']);
      const line = await eventually('it is logged', withinMs, () =>
        logged(service).find(({ status }) => status === 503),
      );
      assert.match(
        line.why ?? '',
        new RegExp(`${key.keyId} is sealed under master key 'k2'.*not in the ring`),
      );
      assert.deepEqual((await reload(service)).names, ['k2', 'k1']);
      assert.equal((await send(service.publicUrl, late, filing)).status, 200);
    },
  );

  const { child, stop } = service;
  assert.match(
    readFileSync(join(env.ARTSEAL_DATA_DIR, 'serving.json'), 'utf8'),
    new RegExp(`"pid":${child.pid},`),
  );
  assert.equal(await stop(), 0);
});

test('master keys from the variable are not read anew, which the log says', {
  timeout: 300_000,
}, async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t), ARTSEAL_MASTER_KEY: newKey('k1') };
  const service = await serveWatched(t, env);
  const { level, msg } = await reload(service);
  assert.equal(level, 30);
  assert.match(msg, /not read anew: they come from no file/);
  assert.equal(await service.stop(), 0);
});
