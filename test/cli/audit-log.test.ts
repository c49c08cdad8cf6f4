import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { artsealWith } from '../support/artseal.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { registryWithPlatform } from '../support/issued.ts';

/** A registry with platform-1, and commands that alice runs with sudo. */
async function registryOfAlice(t: TestContext) {
  const registry = await registryWithPlatform(t, { SUDO_USER: 'alice', SUDO_UID: '1001' });
  return { ...registry, entries: (flags = '') => registry.artseal.list(`audit-log${flags}`) };
}

for (const connection of connections)
  test(`over ${connection}: each change is listed with its actor, reason and values, newest first`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const { keyId } = await artseal.json('key create --name gallery --tier TRIAL');
    await artseal.text(['key', 'suspend', keyId, '--reason', 'leaked, says the gallery']);
    await artseal.text('platform suspend gallery');
    const [platform, key, created] = await artseal.list('audit-log');
    const actor = connection === 'a remote server' ? /^token tok_\w+ \(service-\d+\)$/ : /^local:[^\s:]+$/;
    for (const [entry, ...expected] of [
      [platform, 'platform suspend', 'gallery', undefined],
      [key, 'key suspend', keyId, 'leaked, says the gallery'],
      [created, 'key create', keyId, undefined],
    ]) {
      assert.deepEqual([entry.action, entry.subject, entry.reason], expected);
      assert.match(entry.actor, actor);
    }
    assert.deepEqual([key.before.status, key.after.status], ['ACTIVE', 'SUSPENDED']);
    const [, line = ''] = await artseal.lines('audit-log');
    assert.match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 {2}key suspend +key_/);
    const ending = `  status "ACTIVE" → "SUSPENDED"  by ${key.actor}: leaked, says the gallery`;
    assert.ok(line.endsWith(ending), line);
  });

test('the times in a change are printed as timestamps', async (t) => {
  const { artseal } = await registryOfAlice(t);
  await artseal.text('token create --name ledger --scopes read --expires 2099-01-01T00:00:00Z');
  assert.match(await artseal.text('audit-log'), /, expiresAt 2099-01-01T00:00:00Z, revokedAt null {2}by /);
});

test('an actor whose name has line breaks is printed on one line', async (t) => {
  const { env, keyId, entries } = await registryOfAlice(t);
  const forging = { SUDO_USER: 'mallory\n2026-11-21  key resume\u001b[2J', SUDO_UID: '0\u202e' };
  await artsealWith({ ...env, ...forging }).text(`key suspend ${keyId}`);
  const [{ actor }] = await entries();
  assert.equal(actor, 'local:mallory\ufffd2026-11-21  key resume\ufffd[2J');
});

test('--since takes a date, a time, or a duration', async (t) => {
  const { keyId, artseal, entries } = await registryOfAlice(t);
  // The older entries are of 2026-09-21.
  await artseal.text(`key suspend ${keyId}`);
  const [{ at }] = await entries();
  for (const [since, count] of [
    ['1d', 1],
    ['2h', 1],
    [at, 1],
    [at.slice(0, 10), 1],
    ['2026-09-01', 3],
    ['2026-09-21T14:13:20+00:00', 3],
    ['2026-09-21T14:13:21+00:00', 1],
    ['999999d', 3],
  ]) {
    assert.equal((await entries(` --since ${since}`)).length, count, since);
  }
  for (const since of ['yesterday', '2026-13-01', '2026-02-30', '2026-11-21T09:15:00', '7', '-7d', '7w']) {
    const error = await artseal.errors(2, `audit-log --since=${since}`);
    assert.match(error, /^artseal: audit-log takes --since as in 2026-11-21, .* 7d, not '/);
    assert.ok(error.includes(`not '${since}'`), error);
  }
});

test('a date starts in the business time zone', async (t) => {
  const { env } = await registryOfAlice(t);
  const since = async (zone: string, date: string) =>
    (await artsealWith({ ...env, ARTSEAL_TIME_ZONE: zone }).list(`audit-log --since ${date}`)).length;
  // 1790000000 is 2026-09-21T14:13:20Z.
  assert.equal(await since('UTC', '2026-09-22'), 0);
  assert.equal(await since('Pacific/Kiritimati', '2026-09-22'), 2);
});

testEveryConnection('audit-log');
