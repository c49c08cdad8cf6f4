import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { appendLeaf, emptyTree, leafHash } from '../../../src/domain/merkle.ts';
import { canonicalRecord } from '../../../src/domain/provenance.ts';
import type { LoggedRecord } from '../../../src/store/evidence-commands.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import type { PageQuery } from '../../../src/store/paging.ts';
import { tester } from '../../support/audit-log.ts';
import { allPages, later, noon, refused, time, toFile, toOpen, toShare, underKey } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const hex = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('hex');

/** Sells a filing, by default a new one: its order is released. */
async function sell(store: TestStore, by: CallerRef, sold?: string): Promise<string> {
  const { escrowId, filingNo } = await store.frozen(by, sold);
  await store.resolved(by, escrowId, 'RELEASE');
  return filingNo;
}

/** The commitment of a record, computed as docs/evidence.md says. */
function commitmentTo({ salt, ...content }: NonNullable<LoggedRecord['content']>): string {
  if (content.kind === 'TRANSFER') {
    assert.equal(salt.length, 32);
    const digest = hash('sha256', canonicalRecord(content.record), 'buffer');
    return hash('sha256', Buffer.concat([salt, digest]), 'hex');
  }
  const { caller, filingNo, timestamp, attachments } = content.filing;
  const salts = hex(salt)?.match(/.{32}/g) ?? [];
  const names = ['author', 'condition', 'era', 'material', 'price', 'size'] as const;
  const hidden = attachments === null ? names : ([...names, 'attachments'] as const);
  assert.equal(salts.length, hidden.length);
  const digests = hidden.map((name, nth) => [
    name,
    hash('sha256', `${salts[nth]}${content.filing[name]}`, 'hex'),
  ]);
  const record = { ...Object.fromEntries(digests), caller, filingNo, timestamp, version: 2 };
  return hash('sha256', JSON.stringify(record, Object.keys(record).sort()), 'hex');
}

/** What the evidence log keeps. */
export function evidencePromises({ test }: StoreTests): void {
  test('the log is empty until the first record', async (store) => {
    const { size, root } = await store.perform({ kind: 'GetTree' });
    assert.deepEqual([size, hex(root)], [0, hash('sha256', '', 'hex')]);
    assert.equal((await store.perform({ kind: 'GetTree' })).size, 0);
    await store.fileOne(store.gallery);
    const leaves = await store.allLeaves();
    assert.equal(
      leaves[0],
      `{"detail":{"adopted":0},"kind":"LOG_BEGUN","number":"LOG","sequence":1,"time":${noon.atMs / 1000},"version":1}`,
    );
    assert.equal(leaves.length, 2);
  });

  test('each record has a leaf that commits to it and a salt', async (store) => {
    const filingNo = await sell(store, store.gallery);
    const leaves = await store.allLeaves();
    const time = noon.atMs / 1000;
    for (const [sequence, kind] of [
      [1, 'FILING'],
      [2, 'TRANSFER'],
    ] as const) {
      const found = await store.perform({
        kind: 'FindRecord',
        filingNo,
        sequence,
        owner: store.gallery.callerId,
      });
      assert.ok(found?.content);
      const { content, leafIndex } = found;
      const commitment = commitmentTo(content);
      const leaf = { commitment, kind, number: filingNo, sequence, time, version: 1 };
      assert.equal(leaves[leafIndex], JSON.stringify(leaf));
    }
    assert.equal(leaves.length, 3);
    assert.ok(leaves.every((leaf) => !/author|Baishi|gallery/.test(leaf)));
  });

  test('the leaf of a filing commits to its attachments', async (store) => {
    const by = store.gallery;
    const attachments = JSON.stringify([{ name: '正面.jpg', sha256: 'ab'.repeat(32) }]);
    const { filingNo } = await store.perform({ ...toFile(by), attachments });
    const found = await store.perform({ kind: 'FindRecord', filingNo, sequence: 1, owner: undefined });
    assert.ok(found?.content?.kind === 'FILING');
    assert.equal(found.content.filing.attachments, attachments);
    const leaves = await store.allLeaves();
    assert.equal(JSON.parse(leaves[found.leafIndex] ?? '').commitment, commitmentTo(found.content));
    const filing = await store.findFiling(filingNo);
    assert.deepEqual(filing?.attachments, JSON.parse(attachments));
  });

  test('a link keeps what it discloses, and a transfer can hide nothing', async (store) => {
    const by = store.gallery;
    const filingNo = await sell(store, by);
    await store.perform(toShare(by, filingNo, 'el_1', { disclose: 'author,era' }));
    const link = await store.perform({ kind: 'FindLink', linkId: 'el_1' });
    assert.equal(link?.disclose, 'author,era');
    const transfer = toShare(by, filingNo, 'el_2', { sequence: 2, disclose: 'author' });
    await refused(store.perform(transfer), 'VALIDATION_FAILED');
    assert.equal(await store.perform({ kind: 'FindLink', linkId: 'el_2' }), undefined);
  });

  test('unknown records and those of another caller are not found', async (store) => {
    const other = await store.addPlatform('auction house');
    const filingNo = await store.fileOne(store.gallery);
    const find = (of: string, sequence: number, owner: number | undefined) =>
      store.perform({ kind: 'FindRecord', filingNo: of, sequence, owner });
    assert.equal(await find(filingNo, 1, other.callerId), undefined);
    assert.equal(await find(filingNo, 2, store.gallery.callerId), undefined);
    assert.equal(await find('AS-2026-000009', 1, undefined), undefined);
    assert.equal((await find(filingNo, 1, undefined))?.leafIndex, 1);
  });

  test('a link is returned as given, and a replay returns the first one', async (store) => {
    const by = store.gallery;
    const other = await store.addPlatform('auction house');
    const filingNo = await store.fileOne(by);
    for (const over of [{}, { owner: undefined }]) {
      const command = toShare(by, filingNo, `el_${Object.keys(over)}`, over);
      assert.deepEqual(await store.perform(command), command.link);
    }
    for (const over of [{ owner: other.callerId }, { sequence: 2 }, { filingNo: 'AS-2026-000009' }])
      await refused(store.perform(toShare(by, filingNo, 'none', over)), 'FILING_NOT_FOUND');
    const first = toShare(by, filingNo, 'first');
    for (const command of [first, toShare(by, filingNo, 'second')]) {
      const outcome = await store.done(underKey(by.callerId, 'k', command));
      assert.deepEqual(outcome, { kind: 'DONE', result: first.link, isReplay: command !== first });
    }
  });

  test('links of a filing are listed newest first until they expire, for its owner and internal systems', async (store) => {
    const by = store.gallery;
    const other = await store.addPlatform('auction house');
    const [filingNo, another] = [await store.fileOne(by), await store.fileOne(by)];
    const { atS } = tester;
    for (const [place, linkId] of ['el_1', 'el_2', 'el_3'].entries())
      await store.perform(toShare(by, filingNo, linkId, { expiresAtS: atS + 60 * (place + 1) }));
    await store.perform(toShare(by, another, 'el_other'));
    const listed = async (nowS: number, owner: number | undefined, size = 2) => {
      const list = (page: PageQuery) => store.perform({ kind: 'ListLinks', filingNo, owner, nowS, page });
      return (await allPages(list, size)).flat().map(({ linkId }) => linkId);
    };
    assert.deepEqual(await listed(atS, by.callerId), ['el_3', 'el_2', 'el_1']);
    assert.deepEqual(await listed(atS + 60, undefined), ['el_3', 'el_2']);
    await refused(listed(atS, other.callerId), 'FILING_NOT_FOUND');
    const first = await store.perform({ kind: 'FindLink', linkId: 'el_1' });
    const times = { createdAtS: atS, expiresAtS: atS + 60, revokedAtS: null, disclose: null };
    assert.deepEqual(first, { linkId: 'el_1', filingNo, sequence: 1, ...times });
    assert.equal(await store.perform({ kind: 'FindLink', linkId: 'el_9' }), undefined);
  });

  test('the owner of a filing or an internal system can revoke a link', async (store) => {
    const by = store.gallery;
    const other = await store.addPlatform('auction house');
    const [filingNo, another] = [await store.fileOne(by), await store.fileOne(by)];
    const { callerId } = by;
    await store.perform(toShare(by, filingNo, 'el_1'));
    const revoke = (over: object = {}, atS = tester.atS) =>
      store.perform({
        ...{ kind: 'RevokeLink', by: { ...tester, atS }, linkId: 'el_1' },
        ...{ filingNo: undefined, owner: undefined, ...over },
      });
    for (const over of [{ owner: other.callerId }, { filingNo: another }, { linkId: 'el_2' }])
      await refused(revoke(over), 'LINK_NOT_FOUND');
    assert.equal((await revoke({ owner: callerId, filingNo })).revokedAtS, tester.atS);
    assert.equal((await revoke({}, tester.atS + 5)).revokedAtS, tester.atS);
    assert.equal((await store.perform({ kind: 'FindLink', linkId: 'el_1' }))?.revokedAtS, tester.atS);
  });

  test('a new link deletes expired links, unless the clock is ahead', async (store) => {
    const filingNo = await store.fileOne(store.gallery);
    const noonS = noon.atMs / 1_000;
    const share = (linkId: string, atS: number) =>
      store.perform(
        toShare(store.gallery, filingNo, linkId, { by: { ...tester, atS }, expiresAtS: atS + 60 }),
      );
    const isThere = async (linkId: string) =>
      (await store.perform({ kind: 'FindLink', linkId })) !== undefined;
    await share('el_old', noonS - 120);
    await share('el_new', noonS);
    assert.deepEqual([await isThere('el_old'), await isThere('el_new')], [false, true]);
    // Years ahead, which no filing is dated by.
    await share('el_ahead', noonS + 100_000_000);
    assert.equal(await isThere('el_new'), true);
    // The clock of a sandbox is ahead as an operator wants it.
    await store.perform({ kind: 'AdvanceClock', by: tester, seconds: 60 });
    await share('el_newest', noonS);
    assert.equal(await isThere('el_new'), false);
  });

  test('a store that is opened again continues the log', async (before) => {
    for (let filed = 0; filed < 3; filed += 1) await before.fileOne(before.gallery);
    const leaves = await before.allLeaves();
    await before.close();
    const after = await before.openAgain();
    for (let filed = 0; filed < 2; filed += 1) await after.fileOne(before.gallery);
    const all = await after.allLeaves();
    assert.equal(all.length, 6);
    assert.deepEqual(all.slice(0, leaves.length), leaves);
  });

  test('subtrees, leaves and proofs outside the tree are undefined', async (store) => {
    for (let filed = 0; filed < 4; filed += 1) await store.fileOne(store.gallery);
    const leaves = await store.allLeaves();
    assert.equal(leaves.length, 5);
    const tree = leaves.reduce((head, leaf) => appendLeaf(head, leafHash(leaf)).tree, emptyTree);
    const subtrees = (level: number, place: number, width: number) =>
      store.perform({ kind: 'ReadSubtrees', level, place, width });
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
    assert.equal(await store.perform({ kind: 'ReadLeaves', index: 4, width: 2 }), undefined);
    assert.equal(await store.perform({ kind: 'ProveInclusion', index: 5, size: 5 }), undefined);
    assert.equal(await store.perform({ kind: 'ProveInclusion', index: 0, size: 6 }), undefined);
    assert.equal(await store.perform({ kind: 'ProveConsistency', from: 3, to: 6 }), undefined);
    assert.equal(await store.perform({ kind: 'GetRoot', size: 6 }), undefined);
    const proof = await store.perform({ kind: 'ProveInclusion', index: 4, size: 5 });
    assert.deepEqual([proof?.leaf, proof?.path.map(hex)], [leaves[4], [hex(tree.roots[0])]]);
    const consistency = await store.perform({ kind: 'ProveConsistency', from: 4, to: 5 });
    assert.deepEqual(consistency?.map(hex), [hex(leafHash(leaves[4] ?? ''))]);
  });

  test('a filing up to five seconds before the newest record has the time of that record', async (store) => {
    const by = store.gallery;
    const ofOthers = [];
    // Two instances whose clocks differ by up to five seconds file by turns.
    for (const behindS of [1, 3, 5]) {
      const newest = await store.perform(toFile(by, later(behindS + 0.9)));
      const filed = await store.perform(toFile(by, later(0.2)));
      assert.equal(filed.timestamp, newest.timestamp);
      ofOthers.push(newest, filed);
    }
    // The response, the filing, its leaf and its event have the same time. Reading a filing compares it with its hash and its leaf.
    const times = [1, 1, 3, 3, 5, 5].map((seconds) => later(seconds));
    assert.deepEqual(
      ofOthers.map(({ timestamp }) => timestamp),
      times.map(({ timestamp }) => timestamp),
    );
    for (const { filingNo, timestamp, hash } of ofOthers) {
      const found = await store.findFiling(filingNo);
      assert.deepEqual([found?.timestamp, found?.hash], [timestamp, hash]);
    }
    const leaves = (await store.allLeaves()).slice(1);
    assert.deepEqual(
      leaves.map((leaf) => JSON.parse(leaf).time * 1_000),
      times.map(({ atMs }) => atMs),
    );
    const { events } = await store.perform({ kind: 'ReadEvents', callerId: by.callerId, after: undefined });
    assert.deepEqual(
      events.map(({ atMs }) => Math.floor(atMs / 1_000) * 1_000),
      times.map(({ atMs }) => atMs),
    );
    assert.equal((await store.metrics()).incidents.clockRejections, 0);
  });

  test('the time of another record keeps the offset, and the lead of an advanced sandbox', async (store) => {
    const by = store.gallery;
    await store.fileOne(by, time('2026-11-21T23:59:59Z'));
    const real = time('2026-11-22T07:59:57+08:00');
    const at = { ...time('2026-12-01T07:59:57+08:00'), real };
    const { filingNo, timestamp } = await store.perform(toFile(by, at));
    assert.equal(timestamp, '2026-11-22T07:59:59+08:00');
    assert.equal((await store.findFiling(filingNo))?.timestamp, timestamp);
    const { events } = await store.perform({ kind: 'ReadEvents', callerId: by.callerId, after: undefined });
    assert.equal(events.at(-1)?.atMs, Date.parse('2026-12-01T07:59:59+08:00'));
  });

  test('a transfer up to five seconds before the newest record has the date of that record', async (store) => {
    const by = store.gallery;
    const { escrowId, filingNo } = await store.frozen(by);
    const newYear = time('2027-01-01T00:00:01+08:00');
    await store.fileOne(by, newYear);
    await store.resolved(by, escrowId, 'RELEASE', time('2026-12-31T23:59:58+08:00'));
    const { records } = (await store.findProvenance(filingNo)) ?? {};
    assert.deepEqual(records?.at(-1), { event: 'TRANSFER', at: '2027-01-01' });
    const { events } = await store.perform({ kind: 'ReadEvents', callerId: by.callerId, after: undefined });
    assert.deepEqual([events.at(-1)?.type, events.at(-1)?.atMs], ['provenance.transferred', newYear.atMs]);
  });

  test('a filing further before the newest record is rejected, and nothing is stored', async (store) => {
    const by = store.gallery;
    await store.fileOne(by, later(0.9));
    const before = await store.allLeaves();
    const filing = underKey(by.callerId, 'k', toFile(by, later(-6)));
    const { outcome } = await store.execute(filing);
    assert.ok(outcome.kind === 'REJECTED');
    assert.deepEqual([outcome.apiError.reason, outcome.apiError.hints], ['UNAVAILABLE', { retryAfterS: 6 }]);
    assert.match(outcome.apiError.message, /the clock is 6 s behind the newest record.*artseal clock accept/);
    assert.deepEqual(await store.allLeaves(), before);
    assert.equal((await store.metrics()).incidents.clockRejections, 1);
    // In whole seconds, as records are dated.
    const again = await store.done({ ...filing, effect: toFile(by, later(-5)) });
    assert.deepEqual([again.isReplay, again.result.filingNo], [false, 'AS-2026-000002']);
  });

  test('filings that waited while later ones of others were stored are not rejected', async (store) => {
    const [by, other] = [store.gallery, await store.addPlatform('museum')];
    // The database did not answer for half a minute. More than a share may use in a turn, so that the museum overtakes.
    const waiting = Array.from({ length: 80 }, () => store.execute({ share: 1, effect: toFile(by) }));
    const last = store.execute({ share: 2, effect: toFile(other, later(30)) });
    const filed = await Promise.all([...waiting, last]);
    assert.deepEqual([...new Set(filed.map(({ outcome }) => outcome.kind))], ['DONE']);
    // A clock that was set back is no wait.
    await refused(store.perform(toFile(by)), 'UNAVAILABLE');
  });

  test('filings are compared with the time that an operator accepted last', async (store) => {
    const by = store.gallery;
    const wrong = time('2036-05-01T00:00:00+00:00');
    assert.equal(await store.fileOne(by, wrong), 'AS-2036-000001');
    await refused(store.perform(toFile(by, noon)), 'UNAVAILABLE');
    await store.acceptClock(noon);
    assert.equal(await store.fileOne(by, noon), 'AS-2026-000001');
    await refused(store.perform(toFile(by, wrong)), 'UNAVAILABLE');
    const leaves = await store.allLeaves();
    const timeS = noon.atMs / 1_000;
    assert.deepEqual(JSON.parse(leaves[2] ?? ''), {
      ...{ kind: 'CLOCK_ACCEPTED', number: 'LOG', sequence: 2, time: timeS, version: 1 },
      detail: { timeS },
    });
    assert.partialDeepStrictEqual(await store.perform({ kind: 'ReadLogClock' }), {
      newestS: timeS,
      datedS: timeS,
      accepted: { sequence: 2, timeS },
      aheadS: 0,
    });
  });

  test('other records with a wrong clock do not make it right', async (store) => {
    const by = store.gallery;
    const filingNo = await store.fileOne(by, noon);
    const { order } = await store.perform(toOpen(by, filingNo));
    await store.settled(order.escrowId, { to: 'FROZEN' }, noon);
    const wrong = time('2036-05-01T00:00:00+00:00');
    await store.resolved(by, order.escrowId, 'RELEASE', wrong);
    const { newestS, datedS } = await store.perform({ kind: 'ReadLogClock' });
    assert.deepEqual([newestS, datedS], [wrong.atMs / 1_000, noon.atMs / 1_000]);
    await refused(store.perform(toFile(by, wrong)), 'UNAVAILABLE');
    await store.acceptClock(wrong);
    assert.equal(await store.fileOne(by, wrong), 'AS-2036-000001');
    await store.acceptClock(noon);
    await refused(store.perform(toFile(by, wrong)), 'UNAVAILABLE');
  });

  test('accepting the clock begins an empty log', async (store) => {
    await store.acceptClock(noon);
    const leaves = await store.allLeaves();
    assert.deepEqual(
      leaves.map((leaf) => JSON.parse(leaf).kind),
      ['LOG_BEGUN', 'CLOCK_ACCEPTED'],
    );
  });

  test('a clock that was set by more than a day rejects filings, but not sales', async (store) => {
    const by = store.gallery;
    const setBack = { ...toFile(by), clockSetByS: -86_401 };
    await refused(store.perform(setBack), 'UNAVAILABLE');
    await store.perform({ ...setBack, clockSetByS: 86_400 });
    const latest = later(3_600);
    await store.fileOne(by, latest);
    await refused(store.perform(toFile(by)), 'UNAVAILABLE');
    await sell(store, by, 'AS-2026-000001');
    const leaves = await store.allLeaves();
    const { kind, time: recordedS } = JSON.parse(leaves.at(-1) ?? '');
    assert.deepEqual([kind, recordedS], ['TRANSFER', latest.atMs / 1_000]);
  });
}
