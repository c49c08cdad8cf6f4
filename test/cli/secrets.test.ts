import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { keysInFile, newKey } from '../support/master-keys.ts';
import { startService } from '../support/service.ts';

for (const connection of connections)
  test(`over ${connection}: secrets are re-encrypted under another master key`, async (t) => {
    const { env, write } = keysInFile(t);
    const [k1, k2] = [newKey('k1'), newKey('k2')];
    write(k1);
    const artseal = await commandsOver(t, connection, { env });
    const isServed = connection !== 'a stopped folder';
    await artseal.text('key create --name gallery --tier TRIAL');
    write(k2, k1);
    if (isServed) {
      const part = { name: 'master keys', result: 'RELOADED', detail: 'k2, k1' };
      assert.deepEqual(await artseal.json('reload'), part);
    } else await artseal.errors(1, 'reload', /^artseal: no server runs, so there is nothing to reload/);

    const [before, reencrypted, after, unused] = await artseal.lines('secrets re-encrypt --reason yearly');
    // A server has a key of the evidence log as well.
    const count = Number(/^before {8}k1: (\d)$/.exec(before ?? '')?.[1]);
    assert.ok(count > 0, String(before));
    assert.equal(reencrypted, `re-encrypted  ${count} under k2`);
    assert.equal(after, `after         k2: ${count}`);
    assert.equal(unused, 'k1 decrypts no secret any more: remove it from the file, then run artseal reload');
    const uses = [{ masterKey: 'k2', secrets: count, needed: count }];
    const again = { masterKey: 'k2', reencrypted: 0, before: uses, after: uses };
    assert.deepEqual(await artseal.json('secrets re-encrypt'), again);
    const [entry] = await artseal.list('audit-log');
    assert.deepEqual([entry.action, entry.reason], ['secrets re-encrypt', 'yearly']);
    assert.match(
      await artseal.text('secrets rotate'),
      /^every secret can be opened: there is nothing to replace/,
    );
    assert.deepEqual(await artseal.list('secrets rotate'), []);

    write(k2);
    if (isServed) assert.deepEqual(await artseal.lines('reload'), ['master keys           reloaded: k2']);
    await artseal.text('key create --name other --tier TRIAL');
  });

test('reload has exit code 1 if a file cannot be used, and says why', async (t) => {
  const { env, write } = keysInFile(t);
  write(newKey('k1'));
  const { dataDir } = await startService(t, { env });
  write('k1:0123');
  const { code, printed, errors } = await runHere(['reload'], { ARTSEAL_DATA_DIR: dataDir });
  assert.deepEqual([code, errors], [1, []]);
  assert.match(
    printed.join('\n'),
    /^master keys {11}NOT reloaded, .*: ARTSEAL_MASTER_KEY_FILE cannot be used: entry 1/,
  );
  const fixed = await commandsOver(t, 'a running server', { env: { ARTSEAL_MASTER_KEY: newKey('k1') } });
  assert.equal(
    await fixed.text('reload'),
    'master keys           not reloaded: they come from a variable, so a change needs a restart',
  );
});

testEveryConnection('secrets', 'reload');
