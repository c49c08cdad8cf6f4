import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { openRegistry } from '../../src/operations/registry.ts';
import { runHere } from '../support/artseal.ts';
import { tester } from '../support/audit-log.ts';
import { createManualClock } from '../support/clock.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { tokenTerms } from '../support/tokens.ts';

/** A data folder with platform-1 and an operator's token, and what runs `artseal token` on it. */
async function registryWithPlatform(t: TestContext) {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  await issueInto(env.ARTSEAL_DATA_DIR, 1);
  const run = (words: string, more: Record<string, string> = {}) =>
    runHere(['token', ...words.split(' ')], { ...env, ...more });
  const json = async (words: string) => {
    const { code, printed, errors } = await run(`${words} --json`);
    assert.deepEqual([code, errors], [0, []]);
    return printed.map((line) => JSON.parse(line));
  };
  return { env, run, json };
}

test('a token has the given scopes, expiry and platform, and the list shows them', async (t) => {
  const { run, json } = await registryWithPlatform(t);
  const [created] = await json(
    'create --name ledger --scopes escrow,read --expires 2099-01-01 --platform platform-1',
  );
  assert.match(created.token, /^it_sandbox_/);
  const { token, ...issued } = created;
  const ends = '2099-01-01T00:00:00+00:00';
  assert.deepEqual(issued, {
    tokenId: issued.tokenId,
    name: 'ledger',
    scopes: ['read', 'escrow'],
    platform: 'platform-1',
    expiresAt: ends,
  });
  const [operator, listed] = await json('list');
  assert.deepEqual(operator.scopes, ['read', 'file', 'escrow', 'webhook', 'link', 'operate']);
  assert.deepEqual(listed, { ...issued, status: 'VALID', revokedAt: null });
  const shown = (await run('create --name shown --scopes read --expires 2099-01-01')).printed;
  assert.ok(shown.includes('expires    2099-01-01T00:00:00+00:00'), shown.join('\n'));
  const { printed } = await run('list');
  assert.match(
    printed[1] ?? '',
    /^tok_\w+ {2}VALID {4}read,escrow +ledger {2}for platform-1 {2}expires 2099-01-01T00:00:00\+00:00$/,
  );
  assert.ok(!printed.join().includes(token.slice(11)));
});

test('the command warns of a token without scopes', async (t) => {
  const { run, json } = await registryWithPlatform(t);
  for (const more of ['', ' --json']) {
    const { code, printed, errors } = await run(`create --name idle${more}`);
    assert.equal(code, 0);
    assert.equal(errors.length, 1);
    assert.match(
      errors[0] ?? '',
      /^artseal: tok_\w+ has no permissions: grant some with --scopes read,file,escrow,webhook,link,operate$/,
    );
    assert.ok(printed.length > 0);
  }
  assert.ok((await run('create --name idle')).printed.includes('scopes     nothing'));
  assert.deepEqual((await json('list'))[1].scopes, []);
  assert.match((await run('list')).printed[1] ?? '', /^tok_\w+ {2}VALID {4}nothing +idle$/);
});

test('--operator grants everything, and a duration counts from now', async (t) => {
  const { json } = await registryWithPlatform(t);
  const before = Math.floor(Date.now() / 1000);
  const [created] = await json('create --name office --operator --expires 90d');
  assert.deepEqual(created.scopes, ['read', 'file', 'escrow', 'webhook', 'link', 'operate']);
  const lasts = Date.parse(created.expiresAt) / 1_000 - 90 * 86_400 - before;
  assert.ok(lasts >= 0 && lasts < 60, String(lasts));
});

for (const [words, message] of [
  [
    '--operator --platform platform-1',
    'VALIDATION_FAILED: --scopes cannot include operate if the token acts for a platform',
  ],
  ['--scopes read --platform nobody', 'VALIDATION_FAILED: --platform names no platform'],
  ['--scopes read --expires 2026-01-01', 'VALIDATION_FAILED: --expires must be in the future'],
  ['--scopes read --expires 0d', 'VALIDATION_FAILED: --expires must be in the future'],
] as const) {
  test(`token create ${words}: ${message}`, async (t) => {
    const { run, json } = await registryWithPlatform(t);
    const { code, errors } = await run(`create --name ledger ${words}`);
    assert.deepEqual([code, errors], [1, [`artseal: ${message}`]]);
    assert.equal((await json('list')).length, 1, 'no token was created');
  });
}

test('contradictory and empty arguments are rejected', async (t) => {
  const { run } = await registryWithPlatform(t);
  for (const [words, message] of [
    ['--operator --scopes read', 'token create takes only one of --scopes, --operator'],
    ['--expires soon', 'token create takes --expires as in 2026-11-21,'],
    ['--scopes', 'token create needs SCOPE,… after --scopes'],
    ...['read,pay', 'read,,file', 'Read'].map(
      (named) =>
        [
          `--scopes ${named}`,
          `token create takes --scopes of read, file, escrow, webhook, link, operate, not '${named}'`,
        ] as const,
    ),
  ] as const) {
    const { code, errors } = await run(`create --name ledger ${words}`);
    assert.equal(code, 2);
    assert.ok(errors[0]?.startsWith(`artseal: ${message}`), errors.join());
  }
});

test('the list shows which tokens are expired or revoked', async (t) => {
  const { env, run, json } = await registryWithPlatform(t);
  const clock = createManualClock(Date.parse('2026-01-01T00:00:00Z'));
  const { store, issuance } = await openRegistry(readConfig(env), 'EXISTING', { clock });
  const expiresAtS = Math.floor(clock.nowMs() / 1000) + 60;
  await issuance.issueToken(tokenTerms('gone', { expiresAtS }), tester);
  const { stored } = await issuance.issueToken(tokenTerms('leaked', { expiresAtS }), tester);
  await store.close();
  await run(`revoke ${stored.tokenId}`);
  const list = await json('list');
  assert.deepEqual(
    list.map(({ name, status }) => [name, status]),
    [
      ['operator', 'VALID'],
      ['gone', 'EXPIRED'],
      ['leaked', 'REVOKED'],
    ],
  );
});
