import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { allSettings } from '../../src/config/config.ts';
import { runHere } from '../support/artseal.ts';
import { artsealInShell, executable } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { type IssuedPlatform, issueInto, makeSandbox } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { typedCall } from '../support/typed-json.ts';
import { assertOneLine, runBounded, runShell, serveWatched } from '../support/watched-command.ts';

const commands = [
  ...[
    'init',
    'serve',
    'check',
    'ready',
    'backup',
    'restore',
    'upgrade',
    'platform',
    'key',
    'token',
    'secrets',
  ],
  ...['escrow', 'events', 'webhooks', 'sign', 'call', 'demo', 'licenses'],
];
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/;
/** How soon a running server honours a change. */
const honouredMs = 1_000;
/** A provenance query that a caller who is let in gets FILING_NOT_FOUND for. */
const probe = { target: '/api/v1/provenance/AS-2026-999999' };

type Four<T> = [T, T, T, T];

interface KeyOutput {
  readonly keyId: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  readonly caller: string;
  readonly tier: string;
}

/** Runs `artseal` with these words, separated by spaces, on a folder; fails unless it exits with 0. */
async function artseal(dataDir: string, words: string): Promise<string> {
  const { code, printed, errors } = await runHere(words.split(' '), { ARTSEAL_DATA_DIR: dataDir });
  assert.equal(code, 0, `artseal ${words}: ${errors.join()}`);
  assert.deepEqual(errors, []);
  return printed.join('\n');
}

/** The same in a process of its own. */
async function artsealStarted(t: TestContext, dataDir: string, words: string): Promise<string> {
  const { code, stdout, stderr } = await runBounded(t, words.split(' '), { ARTSEAL_DATA_DIR: dataDir });
  assert.equal(code, 0, `artseal ${words}: ${stderr}`);
  assert.equal(stderr, '');
  return stdout;
}

const artsealJson = async (dataDir: string, words: string) =>
  JSON.parse(await artseal(dataDir, `${words} --json`));

const listed = async (dataDir: string, what: 'key' | 'token' | 'platform') =>
  (await artseal(dataDir, `${what} list --json`)).split('\n').map((line) => JSON.parse(line));

/** A service, and the environment in which its client commands run. */
async function serviceWithClient(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  const [{ apiKey, apiSecret }] = platforms as [IssuedPlatform];
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
  const env = {
    ARTSEAL_DATA_DIR: join(dataDir, 'none'),
    ARTSEAL_API_KEY: apiKey,
    ARTSEAL_API_SECRET: apiSecret,
    ARTSEAL_URL: service.publicUrl,
    TARGET: '/api/v1/filing',
  };
  const bodyFile = join(dataDir, 'body.json');
  writeFileSync(bodyFile, JSON.stringify({ ...artwork, author: '齐白石 "Qi Baishi"\\' }));
  return { env: { ...env, BODY: bodyFile }, apiSecret };
}

const signAndPost = `
set -eu
headers=$(${artsealInShell} sign post "$TARGET" --body "$BODY")
value() { printf '%s\\n' "$headers" | sed -n "s/^$1: //p"; }
body_hash=$(openssl dgst -sha256 -r "$BODY" | cut -d' ' -f1)
message="POST$TARGET$body_hash$(value X-Timestamp)$(value X-Nonce)"
expected=$(printf '%s' "$message" | openssl dgst -sha256 -hmac "$ARTSEAL_API_SECRET" -r | cut -d' ' -f1)
printf '%s\\n' "$headers" >&2
test "$expected" = "$(value X-Signature)"
printf '%s\\n' "$headers" |
  curl -sS -H @- -H 'Content-Type: application/json' --data-binary "@$BODY" "$ARTSEAL_URL$TARGET"
`;

const signStandardInput = `
${artsealInShell} sign POST "$TARGET" --body - < "$BODY" |
  curl -sS -H @- -H 'Content-Type: application/json' --data-binary "@$BODY" "$ARTSEAL_URL$TARGET"
`;

// Most of the time goes into starting commands, which two can do at once.
describe('the artseal command', { concurrency: 3 }, () => {
  test('artseal --help names every command and every setting', { timeout: 300_000 }, async (t) => {
    const { code, stdout, stderr } = await runBounded(t, ['--help'], {});
    assert.equal(code, 0);
    assert.equal(stderr, '');
    for (const name of commands) assert.match(stdout, new RegExp(`^ *${name}\\b`, 'm'));
    for (const { variable } of allSettings) assert.ok(stdout.includes(variable), variable);
  });

  test('artseal --version tells the release that package.json names', async (t) => {
    const { code, stdout, stderr } = await runBounded(t, ['--version'], {});
    assert.deepEqual([code, stderr], [0, '']);
    // What was built tells its commit as well.
    assert.match(
      stdout,
      executable ? /^artseal 0\.1\.0 \([0-9a-f]{40}(-dirty)?\)\n$/ : /^artseal 0\.1\.0\n$/,
    );
  });

  describe('keys and tokens while the server is stopped', { concurrency: 2, timeout: 300_000 }, () => {
    test('keys of every tier are issued, listed, and let in once the server runs', async (t) => {
      const dataDir = temporaryFolder(t);
      await makeSandbox(dataDir);
      const created: KeyOutput[] = [];
      const expected: object[] = [];
      for (const [name, agreed, quota] of [
        ['trial', 'TRIAL', 1_000],
        ['standard', 'STANDARD', 10_000],
        ['agreed', 'ENTERPRISE --monthly-quota 2', 2],
        ['unlimited', 'ENTERPRISE --monthly-quota unlimited', 'unlimited'],
      ] as const) {
        const key: KeyOutput = await artsealJson(dataDir, `key create --name ${name} --tier ${agreed}`);
        assert.deepEqual(Object.keys(key), ['keyId', 'apiKey', 'apiSecret', 'caller', 'tier']);
        assert.match(key.apiKey, /^ak_sandbox_/);
        assert.deepEqual([key.caller, key.tier], [name, agreed.split(' ')[0]]);
        const { apiSecret: _, ...shown } = key;
        created.push(key);
        expected.push({
          ...shown,
          monthlyQuota: quota,
          status: 'ACTIVE',
          expiresAt: null,
          platformStatus: 'ACTIVE',
        });
      }
      assert.deepEqual(await listed(dataDir, 'key'), expected);
      const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
      for (const key of created) {
        assert.equal((await send(service.publicUrl, key, probe)).json.code, 'FILING_NOT_FOUND');
      }
      const agreed = created[2] as KeyOutput;
      assert.equal((await send(service.publicUrl, agreed, probe)).json.code, 'FILING_NOT_FOUND');
      assert.equal((await send(service.publicUrl, agreed, probe)).json.code, 'QUOTA_EXCEEDED');
    });

    test('a key is shown for people to read, and its secret never again', async (t) => {
      const dataDir = temporaryFolder(t);
      await makeSandbox(dataDir);
      const shown = await artseal(dataDir, 'key create --name gallery --tier TRIAL');
      const value = (name: string) => new RegExp(`^${name} +(\\S+)$`, 'm').exec(shown)?.[1] ?? `no ${name}`;
      const list = await artseal(dataDir, 'key list');
      assert.match(list, new RegExp(`^${value('keyId')}\\b.*\\bACTIVE\\b.*\\bTRIAL\\b.*\\bgallery$`, 'm'));
      assert.equal(list.includes(value('apiSecret').slice(11)), false);
    });

    test('suspending, revoking and rotating are there after the next start', async (t) => {
      const dataDir = temporaryFolder(t);
      const { platforms } = await issueInto(dataDir, 4);
      const [suspended, revoked, ended, overlapped] = platforms as Four<IssuedPlatform>;
      await artseal(dataDir, `key suspend ${suspended.keyId}`);
      await artseal(dataDir, `key revoke ${revoked.keyId}`);
      const resume = await runBounded(t, ['key', 'resume', revoked.keyId], { ARTSEAL_DATA_DIR: dataDir });
      assertOneLine(resume, 1, /revoked/);
      const next: KeyOutput = await artsealJson(dataDir, `key rotate ${ended.keyId} --overlap 0`);
      const further: KeyOutput = await artsealJson(dataDir, `key rotate ${overlapped.apiKey}`);
      const nowS = Math.floor(Date.now() / 1000);

      const keys = new Map((await listed(dataDir, 'key')).map((key) => [key.keyId, key]));
      const expiresAtS = Date.parse(keys.get(overlapped.keyId).expiresAt) / 1_000;
      assert.ok(
        expiresAtS > nowS + 86_000 && expiresAtS <= nowS + 86_400,
        `it ends in ${expiresAtS - nowS} s`,
      );
      assert.deepEqual([next.caller, further.caller], ['platform-3', 'platform-4']);

      const { publicUrl } = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
      for (const [key, code] of [
        [suspended, 'KEY_SUSPENDED'],
        [revoked, 'SIGNATURE_INVALID'],
        [ended, 'SIGNATURE_INVALID'],
        [next, 'FILING_NOT_FOUND'],
        [overlapped, 'FILING_NOT_FOUND'],
        [further, 'FILING_NOT_FOUND'],
      ] as const) {
        assert.equal((await send(publicUrl, key, probe)).json.code, code);
      }
    });

    test('tokens are issued, listed without the token, revoked, and only operators govern', async (t) => {
      const dataDir = temporaryFolder(t);
      await makeSandbox(dataDir);
      const service = await artsealJson(dataDir, 'token create --name shop --scopes read,file,escrow');
      const operator = await artsealJson(dataDir, 'token create --name office --operator');
      const gone = await artsealJson(dataDir, 'token create --name gone --scopes read');
      assert.match(service.token, /^it_/);
      await artseal(dataDir, `token revoke ${gone.tokenId}`);
      const list = await listed(dataDir, 'token');
      assert.deepEqual(
        list.map(({ tokenId, name, scopes, status }) => [tokenId, name, scopes.join(), status]),
        [
          [service.tokenId, 'shop', 'read,file,escrow', 'VALID'],
          [operator.tokenId, 'office', 'read,file,escrow,webhook,link,operate', 'VALID'],
          [gone.tokenId, 'gone', 'read', 'REVOKED'],
        ],
      );
      assert.ok(Math.abs(Date.parse(list[2].revokedAt) - Date.now()) < 60_000);
      for (const { token } of [service, operator, gone]) {
        assert.equal(JSON.stringify(list).includes(token.slice(11)), false);
      }

      const { internalUrl } = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
      const status = async (token: string, method: string) =>
        (await typedCall(internalUrl, token, method, {})).status;
      assert.equal(await status(service.token, 'FilingService/ListFilings'), 200);
      assert.equal(await status(service.token, 'AdminService/ListKeys'), 403);
      assert.equal(await status(operator.token, 'AdminService/ListKeys'), 200);
      assert.equal(await status(gone.token, 'FilingService/ListFilings'), 401);
    });

    test('a list shows more than one page of keys', async (t) => {
      const dataDir = temporaryFolder(t);
      const { platforms } = await issueInto(dataDir, 205);
      const keys = await listed(dataDir, 'key');
      assert.deepEqual(
        keys.map(({ keyId }) => keyId),
        platforms.map(({ keyId }) => keyId),
      );
    });
  });

  test('a running server honours each change of a key or token within a second', {
    timeout: 300_000,
  }, async (t) => {
    const dataDir = temporaryFolder(t);
    await issueInto(dataDir, 1);
    const { publicUrl, internalUrl } = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });

    async function becomes(key: KeyOutput, code: string): Promise<void> {
      await eventually(`the answer to ${key.keyId} is ${code}`, honouredMs, async () => {
        return (await send(publicUrl, key, probe)).json.code === code;
      });
    }
    async function tokenBecomes(token: string, status: number): Promise<void> {
      await eventually(`the answer to the token is ${status}`, honouredMs, async () => {
        return (await typedCall(internalUrl, token, 'FilingService/ListFilings', {})).status === status;
      });
    }
    const create = 'key create --name gallery --tier ENTERPRISE --monthly-quota unlimited';

    const first: KeyOutput = JSON.parse(await artsealStarted(t, dataDir, `${create} --json`));
    await t.test('create', () => becomes(first, 'FILING_NOT_FOUND'));
    await artsealStarted(t, dataDir, `key suspend ${first.keyId}`);
    await t.test('suspend', () => becomes(first, 'KEY_SUSPENDED'));
    await artseal(dataDir, `key resume ${first.apiKey}`);
    await t.test('resume', () => becomes(first, 'FILING_NOT_FOUND'));
    const second: KeyOutput = await artsealJson(dataDir, `key rotate ${first.keyId}`);
    await t.test('rotate lets both keys in', async () => {
      await becomes(second, 'FILING_NOT_FOUND');
      await becomes(first, 'FILING_NOT_FOUND');
    });
    const third: KeyOutput = await artsealJson(dataDir, `key rotate ${second.keyId} --overlap 0`);
    await t.test('rotate without overlap lets only the new key in', async () => {
      await becomes(third, 'FILING_NOT_FOUND');
      await becomes(second, 'SIGNATURE_INVALID');
    });
    const fourth: KeyOutput = await artsealJson(dataDir, `key rotate ${third.keyId}`);
    await artsealStarted(t, dataDir, 'platform suspend gallery');
    await t.test('platform suspend refuses all keys', async () => {
      for (const key of [third, fourth]) await becomes(key, 'KEY_SUSPENDED');
    });
    const platforms = await listed(dataDir, 'platform');
    assert.deepEqual(
      platforms.map(({ name, status }) => [name, status]),
      [
        ['platform-1', 'ACTIVE'],
        ['gallery', 'SUSPENDED'],
      ],
    );
    assert.match(await artseal(dataDir, 'key list'), /ACTIVE .*gallery {2}\(platform suspended\)/);
    await artseal(dataDir, 'platform resume gallery');
    await t.test('platform resume', () => becomes(fourth, 'FILING_NOT_FOUND'));
    await artseal(dataDir, `key revoke ${first.keyId}`);
    await t.test('revoke', () => becomes(first, 'SIGNATURE_INVALID'));
    await t.test('and the other keys are as they were', () => becomes(third, 'FILING_NOT_FOUND'));

    const { token, tokenId } = await artsealJson(dataDir, 'token create --name shop --scopes read');
    await t.test('token create', () => tokenBecomes(token, 200));
    await artseal(dataDir, `token revoke ${tokenId}`);
    await t.test('token revoke', () => tokenBecomes(token, 401));
    const statuses = (await listed(dataDir, 'key')).map(({ status }) => status);
    assert.deepEqual(statuses, ['ACTIVE', 'REVOKED', 'REVOKED', 'ACTIVE', 'ACTIVE']);
  });

  test('sign and call', { timeout: 300_000 }, async (t) => {
    const { env, apiSecret } = await serviceWithClient(t);

    await t.test(
      'sign prints four headers that openssl comes to as well and that curl can send',
      async (t2) => {
        const posted = await runShell(t2, signAndPost, env);
        assert.equal(posted.code, 0, posted.stderr);
        const names = posted.stderr.trimEnd().split('\n');
        assert.deepEqual(
          names.map((line) => line.split(': ')[0]),
          ['X-Api-Key', 'X-Timestamp', 'X-Nonce', 'X-Signature'],
        );
        assert.equal(posted.stderr.includes(apiSecret), false);
        assert.match(JSON.parse(posted.stdout).filingNo, /-000001$/);
        const piped = await runShell(t2, signStandardInput, env);
        assert.match(JSON.parse(piped.stdout).filingNo, /-000002$/, piped.stderr);
      },
    );

    await t.test('sign of a GET is used with curl as its help says', async (t2) => {
      const { target } = probe;
      const script = `${artsealInShell} sign GET "$TARGET" | curl -sS -H @- "$ARTSEAL_URL$TARGET"`;
      const { stdout, stderr } = await runShell(t2, script, { ...env, TARGET: target });
      assert.equal(JSON.parse(stdout).code, 'FILING_NOT_FOUND', stderr);
    });

    await t.test(
      'call prints the answer, and exits with 0 for success and 1 for an error answer',
      async (t2) => {
        const body = JSON.stringify({ ...artwork, author: '齐白石' });
        const filed = await runBounded(t2, ['call', 'POST', '/api/v1/filing', body], env);
        assert.equal(filed.code, 0, filed.stderr);
        assert.match(filed.stderr, new RegExp(`^HTTP 200 ${uuid.source}\n$`));
        const { filingNo } = JSON.parse(filed.stdout);
        const found = await runBounded(t2, ['call', 'get', `/api/v1/provenance/${filingNo}`], env);
        assert.equal(found.code, 0, found.stderr);
        assert.equal(JSON.parse(found.stdout).author, '齐白石');
        const refused = await runBounded(t2, ['call', 'POST', '/api/v1/filing', '{}'], env);
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, new RegExp(`^HTTP 400 ${uuid.source}\n$`));
        assert.equal(JSON.parse(refused.stdout).code, 'VALIDATION_FAILED');
      },
    );

    await t.test('call sends to its service alone, whatever the target looks like', async (t2) => {
      let strayed = 0;
      const elsewhere = createServer((_, response) => {
        strayed += 1;
        response.end('{}');
      }).listen(0, '127.0.0.1');
      t2.after(() => elsewhere.close());
      await once(elsewhere, 'listening');
      const { port } = elsewhere.address() as AddressInfo;
      const { code } = await runBounded(t2, ['call', 'GET', `//127.0.0.1:${port}/api/v1/filing`], env);
      assert.notEqual(code, 0);
      assert.equal(strayed, 0);
    });
  });

  test('demo prints filing, provenance, escrow, release and the TRANSFER record', {
    timeout: 300_000,
  }, async (t) => {
    const dataDir = temporaryFolder(t);
    const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
    const env = {
      ARTSEAL_DATA_DIR: dataDir,
      ARTSEAL_PUBLIC_ADDR: new URL(service.publicUrl).host,
      ARTSEAL_INTERNAL_ADDR: new URL(service.internalUrl).host,
    };
    const { code, stdout, stderr } = await runBounded(t, ['demo'], env);
    assert.equal(code, 0, stderr);
    const steps = ['/api/v1/filing', '"status":"SUBMITTED"', '/api/v1/provenance/', '/api/v1/escrow'];
    const inOrder = [...steps, '"state":"FROZEN"', 'RELEASED', '"event":"TRANSFER"'];
    const places = inOrder.map((text) => stdout.indexOf(text));
    assert.ok(!places.includes(-1), stdout);
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
    assert.equal(await service.stop(), 0);
    assertOneLine(await runBounded(t, ['demo'], env), 1, /no response from http:/);
  });
});
