import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { canonicalEvidence } from '../../../src/domain/filing.ts';
import { appendLeaf, emptyTree, leafHash } from '../../../src/domain/merkle.ts';
import { canonicalRecord } from '../../../src/domain/provenance.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import type { PageQuery } from '../../../src/store/paging.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  acceptClock,
  addPlatform,
  allLeaves,
  allPages,
  done,
  fileOne,
  frozen,
  later,
  noon,
  openGallery,
  openPair,
  openStore,
  refused,
  resolved,
  type StoreEngine,
  settled,
  time,
  toFile,
  toOpen,
  toShare,
  underKey,
} from './fixtures.ts';

const hex = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('hex');

/** Sells a filing, by default a new one: its order is released. */
async function sell(store: Store, by: CallerRef, sold?: string): Promise<string> {
  const { escrowId, filingNo } = await frozen(store, by, sold);
  await resolved(store, by, escrowId, 'RELEASE');
  return filingNo;
}

/** What the evidence log keeps. */
export function evidencePromises(engine: StoreEngine): void {
  test('the log is empty until the first record', async (t) => {
    const store = await openStore(t, engine);
    const { size, root } = await perform(store, { kind: 'GetTree' });
    assert.deepEqual([size, hex(root)], [0, hash('sha256', '', 'hex')]);
    const by = await addPlatform(store, 'gallery');
    assert.equal((await perform(store, { kind: 'GetTree' })).size, 0);
    await fileOne(store, by);
    const leaves = await allLeaves(store);
    assert.equal(
      leaves[0],
      `{"detail":{"adopted":0},"kind":"LOG_BEGUN","number":"LOG","sequence":1,"time":${noon.atMs / 1000},"version":1}`,
    );
    assert.equal(leaves.length, 2);
  });

  test('each record has a leaf that commits to it and a salt', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filingNo = await sell(store, by);
    const leaves = await allLeaves(store);
    const time = noon.atMs / 1000;
    for (const [sequence, kind] of [
      [1, 'FILING'],
      [2, 'TRANSFER'],
    ] as const) {
      const found = await perform(store, { kind: 'FindRecord', filingNo, sequence, owner: by.callerId });
      assert.ok(found?.content);
      const { content, leafIndex } = found;
      const canonical =
        content.kind === 'FILING' ? canonicalEvidence(content.filing) : canonicalRecord(content.record);
      assert.equal(content.salt.length, 32);
      const digest = hash('sha256', canonical, 'buffer');
      const commitment = hash('sha256', Buffer.concat([content.salt, digest]), 'hex');
      const leaf = { commitment, kind, number: filingNo, sequence, time, version: 1 };
      assert.equal(leaves[leafIndex], JSON.stringify(leaf));
    }
    assert.equal(leaves.length, 3);
    assert.ok(leaves.every((leaf) => !/author|Baishi|gallery/.test(leaf)));
  });

  test('unknown records and those of another caller are not found', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const filingNo = await fileOne(store, by);
    const find = (of: string, sequence: number, owner: number | undefined) =>
      perform(store, { kind: 'FindRecord', filingNo: of, sequence, owner });
    assert.equal(await find(filingNo, 1, other.callerId), undefined);
    assert.equal(await find(filingNo, 2, by.callerId), undefined);
    assert.equal(await find('AS-2026-000009', 1, undefined), undefined);
    assert.equal((await find(filingNo, 1, undefined))?.leafIndex, 1);
  });

  test('a link is returned as given, and a replay returns the first one', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const filingNo = await fileOne(store, by);
    for (const over of [{}, { owner: undefined }]) {
      const command = toShare(by, filingNo, `el_${Object.keys(over)}`, over);
      assert.deepEqual(await perform(store, command), command.link);
    }
    for (const over of [{ owner: other.callerId }, { sequence: 2 }, { filingNo: 'AS-2026-000009' }])
      await refused(perform(store, toShare(by, filingNo, 'none', over)), 'FILING_NOT_FOUND');
    const first = toShare(by, filingNo, 'first');
    for (const command of [first, toShare(by, filingNo, 'second')]) {
      const outcome = await done(store, underKey(by.callerId, 'k', command));
      assert.deepEqual(outcome, { kind: 'DONE', result: first.link, isReplay: command !== first });
    }
  });

  test('links of a filing are listed newest first until they expire, for its owner and internal systems', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const [filingNo, another] = [await fileOne(store, by), await fileOne(store, by)];
    const { atS } = tester;
    for (const [place, linkId] of ['el_1', 'el_2', 'el_3'].entries())
      await perform(store, toShare(by, filingNo, linkId, { expiresAtS: atS + 60 * (place + 1) }));
    await perform(store, toShare(by, another, 'el_other'));
    const listed = async (nowS: number, owner: number | undefined, size = 2) => {
      const list = (page: PageQuery) => perform(store, { kind: 'ListLinks', filingNo, owner, nowS, page });
      return (await allPages(list, size)).flat().map(({ linkId }) => linkId);
    };
    assert.deepEqual(await listed(atS, by.callerId), ['el_3', 'el_2', 'el_1']);
    assert.deepEqual(await listed(atS + 60, undefined), ['el_3', 'el_2']);
    await refused(listed(atS, other.callerId), 'FILING_NOT_FOUND');
    const first = await perform(store, { kind: 'FindLink', linkId: 'el_1' });
    const times = { createdAtS: atS, expiresAtS: atS + 60, revokedAtS: null };
    assert.deepEqual(first, { linkId: 'el_1', filingNo, sequence: 1, ...times });
    assert.equal(await perform(store, { kind: 'FindLink', linkId: 'el_9' }), undefined);
  });

  test('the owner of a filing or an internal system can revoke a link', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const [filingNo, another] = [await fileOne(store, by), await fileOne(store, by)];
    const { callerId } = by;
    await perform(store, toShare(by, filingNo, 'el_1'));
    const revoke = (over: object = {}, atS = tester.atS) =>
      perform(store, {
        ...{ kind: 'RevokeLink', by: { ...tester, atS }, linkId: 'el_1' },
        ...{ filingNo: undefined, owner: undefined, ...over },
      });
    for (const over of [{ owner: other.callerId }, { filingNo: another }, { linkId: 'el_2' }])
      await refused(revoke(over), 'LINK_NOT_FOUND');
    assert.equal((await revoke({ owner: callerId, filingNo })).revokedAtS, tester.atS);
    assert.equal((await revoke({}, tester.atS + 5)).revokedAtS, tester.atS);
    assert.equal((await perform(store, { kind: 'FindLink', linkId: 'el_1' }))?.revokedAtS, tester.atS);
  });

  test('a new link deletes expired links, unless the clock is ahead', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filingNo = await fileOne(store, by);
    const noonS = noon.atMs / 1_000;
    const share = (linkId: string, atS: number) =>
      perform(store, toShare(by, filingNo, linkId, { by: { ...tester, atS }, expiresAtS: atS + 60 }));
    const isThere = async (linkId: string) =>
      (await perform(store, { kind: 'FindLink', linkId })) !== undefined;
    await share('el_old', noonS - 120);
    await share('el_new', noonS);
    assert.deepEqual([await isThere('el_old'), await isThere('el_new')], [false, true]);
    // Years ahead, which no filing is dated by.
    await share('el_ahead', noonS + 100_000_000);
    assert.equal(await isThere('el_new'), true);
  });

  test('two open stores append to one log', async (t) => {
    const [one, other] = await openPair(t, engine);
    const by = await addPlatform(one, 'gallery');
    for (const store of [one, other, one, one, other]) await fileOne(store, by);
    const leaves = await allLeaves(one);
    assert.equal(leaves.length, 6);
    assert.deepEqual(await allLeaves(other), await allLeaves(one));
  });

  test('subtrees, leaves and proofs outside the tree are undefined', async (t) => {
    const { store, by } = await openGallery(t, engine);
    for (let filed = 0; filed < 4; filed += 1) await fileOne(store, by);
    const leaves = await allLeaves(store);
    assert.equal(leaves.length, 5);
    const tree = leaves.reduce((head, leaf) => appendLeaf(head, leafHash(leaf)).tree, emptyTree);
    const subtrees = (level: number, place: number, width: number) =>
      perform(store, { kind: 'ReadSubtrees', level, place, width });
    assert.equal(hex(await subtrees(0, 3, 2)), leaves.slice(3).map(leafHash).map(hex).join(''));
    assert.equal((await subtrees(1, 0, 2))?.length, 64);
    assert.equal(hex(await subtrees(2, 0, 1)), hex(tree.roots[0]));
    for (const [level, place, width] of [
      [0, 4, 2],
      [0, 5, 1],
      [1, 2, 1],
      [2, 1, 1],
      [8, 0, 1],
      [60, 0, 1],
    ] as const)
      assert.equal(await subtrees(level, place, width), undefined);
    assert.equal(await perform(store, { kind: 'ReadLeaves', index: 4, width: 2 }), undefined);
    assert.equal(await perform(store, { kind: 'ProveInclusion', index: 5, size: 5 }), undefined);
    assert.equal(await perform(store, { kind: 'ProveInclusion', index: 0, size: 6 }), undefined);
    assert.equal(await perform(store, { kind: 'ProveConsistency', from: 3, to: 6 }), undefined);
    assert.equal(await perform(store, { kind: 'GetRoot', size: 6 }), undefined);
    const proof = await perform(store, { kind: 'ProveInclusion', index: 4, size: 5 });
    assert.deepEqual([proof?.leaf, proof?.path.map(hex)], [leaves[4], [hex(tree.roots[0])]]);
    const consistency = await perform(store, { kind: 'ProveConsistency', from: 4, to: 5 });
    assert.deepEqual(consistency?.map(hex), [hex(leafHash(leaves[4] ?? ''))]);
  });

  test('a filing dated before the newest record is rejected, and nothing is stored', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await fileOne(store, by, later(0.9));
    const before = await allLeaves(store);
    const filing = underKey(by.callerId, 'k', toFile(by, later(-1)));
    const { outcome } = await store.execute(filing);
    assert.ok(outcome.kind === 'REJECTED');
    assert.deepEqual([outcome.apiError.reason, outcome.apiError.hints], ['UNAVAILABLE', { retryAfterS: 1 }]);
    assert.match(outcome.apiError.message, /the clock is 1 s behind the newest record.*artseal clock accept/);
    assert.deepEqual(await allLeaves(store), before);
    assert.equal((await store.metrics()).incidents.clockRejections, 1);
    // In whole seconds, as records are dated.
    const again = await done(store, { ...filing, effect: toFile(by, later(0)) });
    assert.deepEqual([again.isReplay, again.result.filingNo], [false, 'AS-2026-000002']);
  });

  test('filings are compared with the time that an operator accepted last', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const wrong = time('2036-05-01T00:00:00+00:00');
    assert.equal(await fileOne(store, by, wrong), 'AS-2036-000001');
    await refused(perform(store, toFile(by, noon)), 'UNAVAILABLE');
    await acceptClock(store, noon);
    assert.equal(await fileOne(store, by, noon), 'AS-2026-000001');
    await refused(perform(store, toFile(by, wrong)), 'UNAVAILABLE');
    const leaves = await allLeaves(store);
    const timeS = noon.atMs / 1_000;
    assert.deepEqual(JSON.parse(leaves[2] ?? ''), {
      ...{ kind: 'CLOCK_ACCEPTED', number: 'LOG', sequence: 2, time: timeS, version: 1 },
      detail: { timeS },
    });
    assert.deepEqual(await perform(store, { kind: 'ReadLogClock' }), {
      newestS: timeS,
      datedS: timeS,
      accepted: { sequence: 2, timeS },
    });
  });

  test('other records with a wrong clock do not make it right', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filingNo = await fileOne(store, by, noon);
    const { order } = await perform(store, toOpen(by, filingNo));
    await settled(store, order.escrowId, { to: 'FROZEN' }, noon);
    const wrong = time('2036-05-01T00:00:00+00:00');
    await resolved(store, by, order.escrowId, 'RELEASE', wrong);
    const { newestS, datedS } = await perform(store, { kind: 'ReadLogClock' });
    assert.deepEqual([newestS, datedS], [wrong.atMs / 1_000, noon.atMs / 1_000]);
    await refused(perform(store, toFile(by, wrong)), 'UNAVAILABLE');
    await acceptClock(store, wrong);
    assert.equal(await fileOne(store, by, wrong), 'AS-2036-000001');
    await acceptClock(store, noon);
    await refused(perform(store, toFile(by, wrong)), 'UNAVAILABLE');
  });

  test('accepting the clock begins an empty log', async (t) => {
    const store = await openStore(t, engine);
    await acceptClock(store, noon);
    const leaves = await allLeaves(store);
    assert.deepEqual(
      leaves.map((leaf) => JSON.parse(leaf).kind),
      ['LOG_BEGUN', 'CLOCK_ACCEPTED'],
    );
  });

  test('a clock that was set by more than a day rejects filings, but not sales', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const setBack = { ...toFile(by), clockSetByS: -86_401 };
    await refused(perform(store, setBack), 'UNAVAILABLE');
    await perform(store, { ...setBack, clockSetByS: 86_400 });
    const latest = later(3_600);
    await fileOne(store, by, latest);
    await refused(perform(store, toFile(by)), 'UNAVAILABLE');
    await sell(store, by, 'AS-2026-000001');
    const leaves = await allLeaves(store);
    const { kind, time: recordedS } = JSON.parse(leaves.at(-1) ?? '');
    assert.deepEqual([kind, recordedS], ['TRANSFER', latest.atMs / 1_000]);
  });
}
