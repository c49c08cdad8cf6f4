import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { runCommand } from '../support/command.ts';
import { readableNames } from '../support/copy-folder.ts';
import { makeSandbox } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { runShell, serveWatched, type WatchedService } from '../support/watched-command.ts';

const credentialFields = ['keyId', 'apiKey', 'apiSecret', 'caller', 'tier', 'token'];
const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };

const credentialsFile = (dataDir: string): string => join(dataDir, 'sandbox-credentials.json');
const credentialsIn = (dataDir: string) => JSON.parse(readFileSync(credentialsFile(dataDir), 'utf8'));
const modeOf = (file: string): number => statSync(file).mode & 0o777;
const readyLines = (output: string): number => output.match(/^artseal ready\b.*$/gm)?.length ?? 0;

/** A first start in a folder that is not there yet. */
async function firstStart(t: TestContext, env: Record<string, string> = {}) {
  const dataDir = join(temporaryFolder(t), 'new', 'data');
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ...env });
  return { service, dataDir, credentials: credentialsIn(dataDir) };
}

async function accepts(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.destroy();
}

/** Bytes of all files of a folder. */
const contentOf = (folder: string): Buffer =>
  Buffer.concat(readableNames(folder).map((name) => readFileSync(join(folder, name))));

const bothWork = async ({ publicUrl, internalUrl }: WatchedService, dataDir: string): Promise<void> => {
  const { token, ...platform } = credentialsIn(dataDir);
  assert.equal((await send(publicUrl, platform, filing)).status, 200);
  assert.equal((await typedCall(internalUrl, token, 'AdminService/ListKeys', {})).status, 200);
};

describe('the first start of an empty sandbox', { concurrency: 2, timeout: 300_000 }, () => {
  test('prints one ready line, when both addresses accept connections', async (t) => {
    const { service } = await firstStart(t);
    await Promise.all([accepts(service.publicUrl), accepts(service.internalUrl)]);
    assert.match(service.publicUrl, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.match(service.internalUrl, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(await service.stop(), 0);
    assert.equal(readyLines(service.stdout()), 1);
  });

  test('writes credentials that work and that only its user can read', async (t) => {
    const { service, dataDir, credentials } = await firstStart(t);
    assert.deepEqual(Object.keys(credentials).toSorted(), credentialFields.toSorted());
    assert.match(credentials.keyId, /^key_[0-9a-f]+$/);
    assert.match(credentials.apiKey, /^ak_sandbox_[0-9A-Za-z]+$/);
    assert.match(credentials.token, /^it_[0-9A-Za-z_]+$/);
    assert.ok(credentials.apiSecret.length >= 32);
    assert.equal(credentials.tier, 'ENTERPRISE');
    const { headers } = await send(service.publicUrl, credentials, filing);
    assert.equal(headers['ratelimit-policy'], '"qps";q=200;w=1');
    assert.equal(typeof credentials.caller, 'string');
    assert.equal(modeOf(credentialsFile(dataDir)), 0o600);
    assert.equal(modeOf(join(dataDir, 'master-key')), 0o600);
    assert.equal(modeOf(dataDir) & 0o077, 0);
    await bothWork(service, dataDir);
    const { entries } = (
      await typedCall(service.internalUrl, credentials.token, 'AdminService/ListAuditLog', {})
    ).json;
    for (const [place, action] of ['token create', 'key create'].entries()) {
      assert.equal(entries[place].action, action);
      assert.equal(entries[place].reason, 'first start of a sandbox');
      assert.match(entries[place].actor, /^user \S+ \(\d+\)$/);
    }
  });

  test('keeps secret and token out of the database, the logs and what it prints', async (t) => {
    const { service, dataDir, credentials } = await firstStart(t, { ARTSEAL_LOG_LEVEL: 'trace' });
    await bothWork(service, dataDir);
    await send(service.publicUrl, { ...credentials, apiSecret: 'wrong' }, filing);
    const inUse = readdirSync(dataDir).filter((name) => name.startsWith('artseal.db'));
    const stored = Buffer.concat(inUse.map((name) => readFileSync(join(dataDir, name))));
    assert.equal(await service.stop(), 0);
    const written = [stored, readFileSync(join(dataDir, 'artseal.db')), service.stderr(), service.stdout()];
    const { apiSecret, token } = credentials;
    const masterKey = readFileSync(join(dataDir, 'master-key'), 'utf8').split(':')[1]?.trim() ?? '';
    assert.equal(masterKey.length, 64);
    for (const text of written) {
      for (const secret of [apiSecret, apiSecret.slice(11), token, token.slice(11), masterKey]) {
        assert.equal(text.includes(secret), false);
      }
    }
    assert.ok(service.stderr().includes('"msg"'), 'something was logged');
  });

  test('stores the token only as its SHA-256', async (t) => {
    const { service, dataDir, credentials } = await firstStart(t);
    assert.equal(await service.stop(), 0);
    const client = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
    t.after(() => client.close());
    const stored = client.prepare('SELECT sha256 FROM service_token').pluck().all();
    assert.deepEqual(stored, [createHash('sha256').update(credentials.token).digest()]);
  });

  test('prints a first call that works when it is pasted', async (t) => {
    const { service, dataDir } = await firstStart(t);
    const pasted = service.stdout().match(/^ *(?:npm run -s artseal --|artseal) call .*$/m)?.[0] ?? '';
    const env = {
      ARTSEAL_DATA_DIR: dataDir,
      ARTSEAL_PUBLIC_ADDR: new URL(service.publicUrl).host,
      ARTSEAL_INTERNAL_ADDR: new URL(service.internalUrl).host,
    };
    const call = await runShell(t, pasted, env);
    assert.equal(call.code, 0, call.stderr);
    assert.match(JSON.parse(call.stdout).filingNo, /^AS-\d{4}-000001$/);
    const [, allCalls = ''] = service.stdout().match(/^All calls in a row: (.*)$/m) ?? [];
    const demo = await runShell(t, allCalls, env);
    assert.equal(demo.code, 0, demo.stderr);
    assert.match(demo.stdout, /"event":"TRANSFER"/);
  });
});

describe('secrets of a sandbox are not made', { concurrency: 2, timeout: 300_000 }, () => {
  for (const [how, signal] of [
    ['anew on the second start', 'SIGTERM'],
    ['anew after kill -9', 'SIGKILL'],
  ] as const) {
    test(how, async (t) => {
      const { service, dataDir } = await firstStart(t);
      const kept = ['sandbox-credentials.json', 'master-key'].map((name) => join(dataDir, name));
      const before = kept.map((file) => readFileSync(file, 'utf8'));
      await service.stop(signal);
      const again = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
      await bothWork(again, dataDir);
      assert.deepEqual(
        kept.map((file) => readFileSync(file, 'utf8')),
        before,
      );
      assert.equal(await again.stop(), 0);
      assert.match(again.stdout(), /^artseal ready [^\n]*\n$/);
    });
  }

  for (const [what, words] of [
    ['a key', ['key', 'create', '--name', 'first', '--tier', 'TRIAL']],
    ['a token', ['token', 'create', '--name', 'first']],
  ] as const) {
    test(`when ${what} was issued before`, async (t) => {
      const dataDir = temporaryFolder(t);
      const env = { ARTSEAL_DATA_DIR: dataDir };
      await makeSandbox(dataDir);
      assert.equal((await runCommand(words, env)).code, 0);
      const service = await serveWatched(t, env);
      assert.equal(existsSync(credentialsFile(dataDir)), false);
      assert.equal(await service.stop(), 0);
      assert.match(service.stdout(), /^artseal ready [^\n]*\n$/);
    });
  }

  test('for a master key of the operator, which is used and written nowhere', async (t) => {
    const { service, dataDir, credentials } = await firstStart(t, {
      ARTSEAL_MASTER_KEY: `main:${'0123456789abcdef'.repeat(4)}`,
    });
    assert.equal(
      existsSync(join(dataDir, 'master-key')),
      false,
      'the given master key is used, none is made',
    );
    assert.equal(contentOf(dataDir).includes('0123456789abcdef'.repeat(4)), false);
    assert.equal((await send(service.publicUrl, credentials, filing)).status, 200);
  });
});
