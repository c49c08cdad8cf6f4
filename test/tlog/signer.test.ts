import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { perform } from '../../src/store/store.ts';
import { runHere } from '../support/artseal.ts';
import { createManualClock } from '../support/clock.ts';
import { keptIn, signedBy, startPublishing } from './publishing.ts';

describe('publishing the evidence log', () => {
  test('a new registry has a name and a key, and publishes both before its doors open', async (t) => {
    const { publication, dataDir, execute } = await startPublishing(t);
    const current = publication.current() ?? assert.fail();
    assert.match(current.origin, /^artseal\.invalid\/[0-9a-f]{16}$/);
    const [vkey = ''] = publication.verifierKeys();
    assert.ok(vkey.startsWith(`${current.origin}+`));
    assert.deepEqual({ ...signedBy(current.note, [vkey]) }, { ...current, isSigned: false });
    assert.equal(keptIn(dataDir), current.note);
    assert.equal(statSync(join(dataDir, 'log-checkpoint')).mode & 0o777, 0o600);
    const leaves = await execute({ kind: 'ReadLeaves', index: 0, width: current.size });
    assert.deepEqual(
      leaves?.map((leaf) => JSON.parse(leaf)).map(({ kind, detail }) => [kind, detail.vkey]),
      [
        ['LOG_BEGUN', undefined],
        ['KEY_ADDED', vkey],
      ],
    );
  });

  test('what was filed is covered within a second, and the checkpoint is kept in file and database', async (t) => {
    const { publication, dataDir, execute, file, published } = await startPublishing(t);
    const first = publication.current();
    const leaf = await file(5);
    assert.equal(publication.current(), first);
    assert.equal(await publication.covering(first ? first.size - 1 : 0, 0), first);
    await published(leaf);
    const current = publication.current() ?? assert.fail();
    const tree = await execute({ kind: 'GetTree' });
    assert.deepEqual(signedBy(current.note, publication.verifierKeys()).size, leaf + 1);
    assert.deepEqual([tree.size, Buffer.from(tree.root)], [current.size, Buffer.from(current.root)]);
    assert.equal(keptIn(dataDir), current.note);
    assert.equal((await execute({ kind: 'GetLog' })).newest?.note, current.note);
  });

  test('whoever waits for a checkpoint that does not come in time is told so', async (t) => {
    const { publication, clock } = await startPublishing(t);
    const waited = publication.covering(1_000, 3_000);
    clock.advance(3_000);
    assert.equal(await waited, undefined);
  });

  test('what has grown at the end is published before the store is closed, and is current after a restart', async (t) => {
    const service = await startPublishing(t);
    const leaf = await service.file();
    const [vkey] = service.publication.verifierKeys();
    await service.close();
    const note = keptIn(service.dataDir);
    assert.equal(signedBy(note, [vkey ?? '']).size, leaf + 1);
    const again = await startPublishing(t, { dataDir: service.dataDir });
    assert.deepEqual(again.publication.current()?.note, note);
    assert.deepEqual(again.publication.verifierKeys(), [vkey]);
  });

  test('an idle log is not signed again', async (t) => {
    const { publication, clock, store } = await startPublishing(t);
    const first = publication.current();
    for (let second = 0; second < 3; second += 1) {
      clock.advance(1_000);
      await perform(store, { kind: 'GetTree' });
    }
    assert.equal(publication.current(), first);
  });

  test('the origin is that of the setting', async (t) => {
    const env = { ARTSEAL_LOG_ORIGIN: 'log.example/artseal' };
    const { publication } = await startPublishing(t, { env, clock: createManualClock() });
    assert.equal(publication.current()?.origin, 'log.example/artseal');
    assert.match(publication.verifierKeys()[0] ?? '', /^log\.example\/artseal\+[0-9a-f]{8}\+/);
  });
});

test('artseal evidence vkey prints the keys that sign', async (t) => {
  const service = await startPublishing(t);
  await service.close();
  const env = { ARTSEAL_DATA_DIR: service.dataDir };
  const { code, printed } = await runHere(['evidence', 'vkey'], env);
  assert.deepEqual([code, printed], [0, service.publication.verifierKeys()]);
  const told = await runHere(['evidence', 'vkey', '--json'], env);
  assert.equal(JSON.parse(told.printed[0] ?? '').vkey, printed[0]);
});
