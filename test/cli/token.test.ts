import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { registryWithPlatform } from '../support/issued.ts';

const allScopes = ['read', 'file', 'escrow', 'webhook', 'link', 'operate'];

for (const connection of connections)
  test(`over ${connection}: a token has the given scopes, expiry and platform, is listed and revoked`, async (t) => {
    const artseal = await commandsOver(t, connection);
    await artseal.json('key create --name platform-1 --tier TRIAL');
    const others = await artseal.list('token list');
    const terms = '--scopes escrow,read --expires 2099-01-01 --platform platform-1';
    const { token, ...issued } = await artseal.json(`token create --name ledger ${terms}`);
    assert.match(token, /^it_sandbox_/);
    assert.deepEqual(issued, {
      ...{ tokenId: issued.tokenId, name: 'ledger', scopes: ['read', 'escrow'], platform: 'platform-1' },
      expiresAt: '2099-01-01T00:00:00+00:00',
    });
    const [listed, ...more] = (await artseal.list('token list')).slice(others.length);
    assert.deepEqual([listed, more], [{ ...issued, status: 'VALID', revokedAt: null }, []]);
    const shown = await artseal.lines('token create --name shown --scopes read --expires 2099-01-01');
    assert.ok(shown.includes('expires    2099-01-01T00:00:00+00:00'), shown.join('\n'));
    const list = await artseal.text('token list');
    assert.match(
      list,
      /^tok_\w+ {2}VALID {4}read,escrow +ledger {2}for platform-1 {2}expires 2099-01-01T00:00:00\+00:00$/m,
    );
    assert.ok(!list.includes(token.slice(11)));
    const revoked = await artseal.json(`token revoke ${issued.tokenId} --reason leaked`);
    assert.deepEqual([revoked.tokenId, revoked.status], [issued.tokenId, 'REVOKED']);
    assert.ok(Math.abs(Date.parse(revoked.revokedAt) - Date.now()) < 60_000);
    const [entry] = await artseal.list('audit-log');
    assert.deepEqual([entry.action, entry.subject, entry.reason], ['token revoke', issued.tokenId, 'leaked']);
  });

test('the command warns of a token without scopes', async (t) => {
  const { env, artseal } = await registryWithPlatform(t);
  const { code, printed, errors } = await runHere(['token', 'create', '--name', 'idle'], env);
  assert.equal(code, 0);
  assert.match(
    errors.join('\n'),
    /^artseal: tok_\w+ has no permissions: grant some with --scopes read,file,escrow,webhook,link,operate$/,
  );
  assert.ok(printed.includes('scopes     nothing'));
  assert.deepEqual((await artseal.list('token list'))[1].scopes, []);
  assert.match(await artseal.text('token list'), /^tok_\w+ {2}VALID {4}nothing +idle$/m);
});

test('--operator grants everything, and a duration counts from now', async (t) => {
  const { artseal } = await registryWithPlatform(t);
  const before = Math.floor(Date.now() / 1000);
  const created = await artseal.json('token create --name office --operator --expires 90d');
  assert.deepEqual(created.scopes, allScopes);
  const lasts = Date.parse(created.expiresAt) / 1_000 - 90 * 86_400 - before;
  assert.ok(lasts >= 0 && lasts < 60, String(lasts));
});

test('a token with wrong terms is not created', async (t) => {
  const { artseal } = await registryWithPlatform(t);
  const scopes = 'takes --scopes of read, file, escrow, webhook, link, operate, not';
  for (const [code, terms, error] of [
    [1, '--operator --platform platform-1', '--scopes cannot include operate if the token acts for'],
    [1, '--scopes read --platform nobody', '--platform names no platform'],
    [1, '--scopes read --expires 0d', '--expires must be in the future'],
    [2, '--operator --scopes read', 'takes only one of --scopes, --operator'],
    [2, '--scopes read,,file', `${scopes} 'read,,file'`],
  ] as const) {
    const errors = await artseal.errors(code, `token create --name ledger ${terms}`);
    const prefix = code === 1 ? 'artseal: VALIDATION_FAILED: ' : 'artseal: token create ';
    assert.ok(errors.startsWith(`${prefix}${error}`), errors);
  }
  assert.equal((await artseal.list('token list')).length, 1);
});

testEveryConnection('token');
