import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBundles } from '../../../src/evidence/log/bundle.ts';
import type { Publication } from '../../../src/evidence/log/signer.ts';
import { executorOf } from '../../../src/store/store.ts';
import { sqliteInThisThread } from '../../store/engines.ts';
import { addPlatform, fileOne, openStore } from '../../store/promises/fixtures.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { createTestPublication } from '../../support/publication.ts';
import { apiError } from '../../support/rejected.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { proven } from './outsider.ts';

const store = await openStore(fileScope, sqliteInThisThread, temporaryFolder(fileScope));
const execute = executorOf(store);
const by = await addPlatform(store, 'gallery');
const named = async () => ({ filingNo: await fileOne(store, by), sequence: 1, owner: by.callerId });

test('a record that a checkpoint covers is proven at once, even if the log has grown since', async () => {
  const publication = createTestPublication();
  const record = await named();
  const { size } = await publication.publish(execute);
  await named();
  const bundle = await createBundles(publication).bundleOf(record, execute);
  assert.equal(proven({ ...bundle }, publication.verifierKeys()[0] ?? '').size, size);
});

test('a call before the next checkpoint waits for it, and uses no store request meanwhile', async () => {
  const publication = createTestPublication();
  await publication.publish(execute);
  const record = await named();
  const bundle = createBundles(publication).bundleOf(record, execute);
  await eventually('it waits', 60_000, () => publication.waiting() === 1);
  assert.equal((await store.metrics()).requestsInFlight, 0);
  await publication.publish(execute);
  assert.equal(
    proven({ ...(await bundle) }, publication.verifierKeys()[0] ?? '').leaf.number,
    record.filingNo,
  );
});

/** Never publishes anything. `timeouts` has the timeouts of each wait, and `giveUp` ends all. */
function silent() {
  const timeouts: number[] = [];
  const over = Promise.withResolvers<undefined>();
  const publication: Pick<Publication, 'current' | 'covering'> = {
    current: () => undefined,
    covering: (_, withinMs) => {
      timeouts.push(withinMs);
      return over.promise;
    },
  };
  return { publication, timeouts, giveUp: () => over.resolve(undefined) };
}

test('after three seconds without a checkpoint the response says when to try again', async () => {
  const { publication, timeouts, giveUp } = silent();
  const waiting = createBundles(publication).bundleOf(await named(), execute);
  giveUp();
  await assert.rejects(
    waiting,
    apiError('UNAVAILABLE', /^No checkpoint of the evidence log covers the record yet/),
  );
  await assert.rejects(waiting, { hints: { retryAfterS: 1 } });
  assert.deepEqual(timeouts, [3_000]);
});

test('at most 256 calls wait at a time, and calls that gave up make room', async () => {
  const { publication, timeouts, giveUp } = silent();
  const { bundleOf } = createBundles(publication);
  const record = await named();
  const all = Array.from({ length: 256 }, () => bundleOf(record, execute));
  await eventually('all wait', 60_000, () => timeouts.length === 256);
  await assert.rejects(bundleOf(record, execute), apiError('UNAVAILABLE', /^Too many calls wait/));
  assert.equal(timeouts.length, 256);
  giveUp();
  for (const one of await Promise.allSettled(all)) assert.equal(one.status, 'rejected');
  await assert.rejects(bundleOf(record, execute), apiError('UNAVAILABLE', /^No checkpoint/));
});

test('a bundle is never made for a tree with another root than the published one', async () => {
  const publication = createTestPublication();
  const record = await named();
  const published = await publication.publish(execute);
  const root = Uint8Array.from(published.root, (byte, at) => (at === 31 ? byte ^ 1 : byte));
  const other = { ...publication, current: () => ({ ...published, root }) };
  await assert.rejects(
    createBundles(other).bundleOf(record, execute),
    /is not in the tree of \d+ leaves that was published/,
  );
  const larger = { ...publication, current: () => ({ ...published, size: published.size + 1 }) };
  await assert.rejects(
    createBundles(larger).bundleOf(record, execute),
    /lacks leaf \d+, which was published/,
  );
});
