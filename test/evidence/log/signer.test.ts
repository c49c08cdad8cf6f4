import assert from 'node:assert/strict';
import { mkdirSync, rmdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { scrape } from '../../support/metrics.ts';
import { keptIn, signedBy, startPublishing } from './publishing.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

describe('publishing the evidence log', () => {
  test('a new registry has a name and a key, and publishes both before it listens', async (t) => {
    const { publication, dataDir, execute } = await startPublishing(t);
    const current = publication.current() ?? assert.fail();
    assert.match(current.origin, /^artseal\.invalid\/[0-9a-f]{16}$/);
    const [vkey = ''] = publication.verifierKeys();
    assert.ok(vkey.startsWith(`${current.origin}+`));
    assert.partialDeepStrictEqual(signedBy(current.note, [vkey]), {
      ...current,
      root: Uint8Array.from(current.root),
    });
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

  test('a filing is covered within a second, and file and database hold the checkpoint', async (t) => {
    const { publication, dataDir, execute, file, published, clock } = await startPublishing(t);
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
    const waiting = publication.covering(1_000, 3_000);
    clock.advance(3_000);
    assert.equal(await waiting, undefined, 'no checkpoint comes in time');
  });

  test('the last filings are published before the store is closed, and are current after a restart', async (t) => {
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
    const { publication, clock, store, dataDir } = await startPublishing(t);
    const [first, inode] = [publication.current(), statSync(join(dataDir, 'log-checkpoint')).ino];
    const execute = t.mock.method(store, 'execute');
    const asked = (kind: string) =>
      execute.mock.calls.filter(({ arguments: [unit] }) => unit.effect?.kind === kind).length;
    // A look begins only after the previous one has ended.
    await eventually('two looks and the beginning of a third', timeoutMs, () => {
      clock.advance(1_000);
      return asked('GetTree') >= 3;
    });
    assert.equal(asked('KeepCheckpoint'), 0);
    assert.equal(publication.current(), first);
    assert.equal(statSync(join(dataDir, 'log-checkpoint')).ino, inode);
  });
});

test('if the file cannot be written, filing continues and nothing is published until it can be', async (t) => {
  const env = { ARTSEAL_METRICS_ADDR: '127.0.0.1:0' };
  const { publication, clock, dataDir, file, logLines, metricsAddress } = await startPublishing(t, { env });
  const metric = async (name: string) =>
    (await scrape(`http://${metricsAddress}/metrics`)).value(`artseal_evidence_log_${name}`);
  const first = publication.current();
  const draft = join(dataDir, `log-checkpoint.${process.pid}.new`);
  mkdirSync(draft);
  const leaf = await file(3);
  assert.equal(await metric('sign_failures_total'), 0);
  await eventually('more than one failure', timeoutMs, async () => {
    clock.advance(1_000);
    return ((await metric('sign_failures_total')) ?? 0) > 1;
  });
  assert.equal(publication.current(), first);
  assert.equal(keptIn(dataDir), first?.note);
  const logged = logLines.filter((line) => line.includes('no checkpoint of the evidence log can be signed'));
  assert.equal(logged.length, 1);
  assert.match(logged[0] ?? '', /EISDIR.*log-checkpoint\.\d+\.new/);
  assert.deepEqual([leaf, await metric('leaves')], [4, 5]);
  assert.equal(await metric('published_leaves'), 2);

  rmdirSync(draft);
  await eventually('a checkpoint', timeoutMs, () => {
    clock.advance(1_000);
    return publication.current()?.size === 5;
  });
  assert.ok(logLines.some((line) => line.includes('are signed again')));
  clock.advance(1_000);
  assert.equal(await metric('published_leaves'), 5);
  const publishedAtS = (await metric('published_seconds')) ?? 0;
  assert.ok(publishedAtS <= clock.nowMs() / 1_000 && publishedAtS > clock.nowMs() / 1_000 - 10);
});
