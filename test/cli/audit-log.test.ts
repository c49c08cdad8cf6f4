import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A data folder with the platform platform-1, and commands that alice runs with sudo. */
async function registryOfAlice(t: TestContext) {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t), SUDO_USER: 'alice', SUDO_UID: '1001' };
  const { platforms } = await issueInto(env.ARTSEAL_DATA_DIR, 1);
  const artseal = async (...words: string[]) => {
    const { code, printed, errors } = await runHere(words, env);
    assert.deepEqual([code, errors], [0, []]);
    return printed;
  };
  const entries = async (...words: string[]) =>
    (await artseal('audit-log', '--json', ...words)).map((line) => JSON.parse(line));
  return { env, keyId: platforms[0]?.keyId ?? assert.fail(), artseal, entries };
}

test('each change is listed with its actor, reason and values, newest first', async (t) => {
  const { keyId, artseal, entries } = await registryOfAlice(t);
  await artseal('key', 'suspend', keyId, '--reason', 'leaked, says the gallery');
  await artseal('platform', 'suspend', 'platform-1');
  const [platform, key, ...issued] = await entries();
  assert.deepEqual(
    [platform.actor, platform.action, platform.subject, platform.reason],
    ['user alice (1001)', 'platform suspend', 'platform-1', undefined],
  );
  assert.deepEqual(
    [key.actor, key.action, key.subject, key.reason],
    ['user alice (1001)', 'key suspend', keyId, 'leaked, says the gallery'],
  );
  assert.deepEqual([key.before.status, key.after.status], ['ACTIVE', 'SUSPENDED']);
  assert.deepEqual(
    issued.map(({ action }) => action),
    ['token create', 'key create'],
  );
  const lines = await artseal('audit-log');
  assert.match(lines[1] ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 {2}key suspend +key_/);
  assert.match(
    lines[1] ?? '',
    / {2}status "ACTIVE" → "SUSPENDED" {2}by user alice \(1001\): leaked, says the gallery$/,
  );
});

test('an actor whose name has line breaks is printed on one line', async (t) => {
  const { env, keyId } = await registryOfAlice(t);
  const forging = { ...env, SUDO_USER: 'mallory\n2026-11-21  key resume\u001b[2J', SUDO_UID: '0\u202e' };
  await runHere(['key', 'suspend', keyId], forging);
  const { printed } = await runHere(['audit-log', '--json'], env);
  assert.equal(
    JSON.parse(printed[0] ?? '').actor,
    'user mallory\ufffd2026-11-21  key resume\ufffd[2J (0\ufffd)',
  );
});

test('commands that change nothing make no audit entry', async (t) => {
  const { keyId, artseal, entries } = await registryOfAlice(t);
  const before = await entries();
  await artseal('key', 'resume', keyId);
  await artseal('key', 'list');
  await artseal('secrets', 'reseal');
  await artseal('audit-log');
  assert.deepEqual(await entries(), before);
});

test('--since takes a date, a time, or a duration', async (t) => {
  const { keyId, artseal, entries } = await registryOfAlice(t);
  // The older entries are of 2026-09-21.
  await artseal('key', 'suspend', keyId);
  const [{ at }] = await entries();
  for (const since of ['1d', '2h', at, at.slice(0, 10)]) {
    assert.deepEqual(
      (await entries('--since', since)).map(({ action }) => action),
      ['key suspend'],
      since,
    );
  }
  for (const since of ['2026-09-01', '2026-09-21T14:13:20+00:00', '999999d']) {
    assert.equal((await entries('--since', since)).length, 3, since);
  }
  assert.equal((await entries('--since', '2026-09-21T14:13:21+00:00')).length, 1);
});

test('a date starts in the business time zone', async (t) => {
  const { env } = await registryOfAlice(t);
  const since = async (zone: string, date: string) => {
    const words = ['audit-log', '--since', date];
    return (await runHere(words, { ...env, ARTSEAL_TIME_ZONE: zone })).printed.length;
  };
  // 1790000000 is 2026-09-21T14:13:20Z.
  assert.equal(await since('UTC', '2026-09-22'), 0);
  assert.equal(await since('Pacific/Kiritimati', '2026-09-22'), 2);
});

for (const since of ['yesterday', '2026-13-01', '2026-02-30', '2026-11-21T09:15:00', '7', '-7d', '7w']) {
  test(`audit-log rejects --since ${since}`, async (t) => {
    const { env } = await registryOfAlice(t);
    const { code, errors } = await runHere(['audit-log', `--since=${since}`], env);
    assert.equal(code, 2);
    assert.match(errors.join('\n'), /^artseal: audit-log takes --since as in 2026-11-21, .* 7d, not '/);
    assert.ok(errors.join().includes(`not '${since}'`), errors.join());
  });
}
