import assert from 'node:assert/strict';
import type { NoticeState } from '../../../src/domain/registration.ts';
import type { PageQuery } from '../../../src/store/paging.ts';
import type { NoticeResult } from '../../../src/store/registration-commands.ts';
import { tester } from '../../support/audit-log.ts';
import {
  assertListed,
  firstPage,
  linkEndS,
  newAccessLink,
  newKey,
  newRegistration,
  nowS,
  refused,
} from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const by = tester;
const platform = { name: 'house', tier: 'TRIAL', monthlyQuota: 1_000 } as const;

const listed = async (store: TestStore, notice?: NoticeState | 'DUE') =>
  (await store.perform({ kind: 'ListRegistrations', notice, page: firstPage(100) })).items;

const emails = async (store: TestStore, notice?: NoticeState | 'DUE') =>
  (await listed(store, notice)).map(({ email }) => email);

const claim = (store: TestStore, attempt: string, atS: number, deadBeforeS = atS - 900) =>
  store.perform({ kind: 'ClaimNotice', by: undefined, attempt, nowS: atS, deadBeforeS });

const record = (store: TestStore, registrationId: string, attempt: string, result: NoticeResult) =>
  store.perform({ kind: 'RecordNotice', registrationId, attempt, result, detail: '', nowS: 50 });

/** Pre-registrations, approvals and notices. */
export function registrationPromises({ storeTest }: StoreTests): void {
  storeTest(
    'registrations are listed in the order of arrival, and a known address keeps its place',
    async (store) => {
      const first = await store.preRegistered('One@example.com');
      await store.preRegistered('two@example.com');
      const again = newRegistration(' one@EXAMPLE.com ', { name: 'other' });
      const added = await store.perform({ kind: 'AddRegistration', by, registration: again });
      assert.deepEqual(added, { registration: first, isNew: false });
      assert.ok(await store.perform({ kind: 'TakeForm', atS: 7, max: 9, registration: again }));
      assert.ok(
        await store.perform({
          kind: 'TakeForm',
          atS: 8,
          max: 9,
          registration: newRegistration('three@example.com'),
        }),
      );
      const list = (page: PageQuery) => store.perform({ kind: 'ListRegistrations', notice: undefined, page });
      await assertListed(list, ({ email, isByForm }) => [email, isByForm], [
        ['One@example.com', false],
        ['two@example.com', false],
        ['three@example.com', true],
      ]);
      const [, , form] = await listed(store);
      const { id: _, registrationId, ...rest } = form ?? assert.fail();
      assert.match(registrationId, /^rg_[0-9a-f]{16}$/);
      assert.deepEqual(rest, {
        ...{
          email: 'three@example.com',
          name: 'Qi 齐',
          intendedUse: 'to file ink paintings',
          tier: 'STANDARD',
        },
        ...{ isByForm: true, registeredAtS: 8, appointmentAtS: null, platform: null, linkExpiresAtS: null },
        ...{ claimedAtS: null, notice: null, noticeAtS: null, noticeDetail: null },
      });
    },
  );

  storeTest('the form adds a bounded number, and operators more', async (store) => {
    const take = (nth: number) =>
      store.perform({
        kind: 'TakeForm',
        atS: nth,
        max: 3,
        registration: newRegistration(`n${nth}@example.com`),
      });
    assert.deepEqual(await Promise.all([1, 2, 3, 4, 5].map(take)), [true, true, true, false, false]);
    // Nobody learns from a full form that an address is known.
    assert.equal(await take(3), false);
    const { registrationId } = await store.preRegistered('operator@example.com');
    assert.equal(await take(4), false);
    const [{ registrationId: oldest } = assert.fail()] = await listed(store);
    await store.perform({ kind: 'RemoveRegistration', by, registrationId });
    assert.equal(await take(4), false);
    await store.perform({ kind: 'RemoveRegistration', by, registrationId: oldest });
    assert.deepEqual([await take(4), await take(5)], [true, false]);
    assert.deepEqual(await emails(store), ['n2@example.com', 'n3@example.com', 'n4@example.com']);
  });

  storeTest('an appointment is set and removed', async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    const set = (appointmentAtS: number | null) =>
      store.perform({ kind: 'SetAppointment', by, registrationId, appointmentAtS });
    assert.equal((await set(500)).appointmentAtS, 500);
    assert.equal((await set(null)).appointmentAtS, null);
    const named = { registrationId: 'rg_none', appointmentAtS: 1 };
    await refused(store.perform({ kind: 'SetAppointment', by, ...named }), 'NOT_FOUND');
  });

  storeTest('an approved registration gets its platform at once, and its key once', async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    const link = newAccessLink();
    const approve = () => store.perform({ kind: 'ApproveRegistration', by, registrationId, platform, link });
    const approved = await approve();
    assert.deepEqual([approved.platform, approved.linkExpiresAtS], ['house', linkEndS]);
    assert.ok(Buffer.from(approved.sha256).equals(link.sha256));
    await refused(approve(), 'VALIDATION_FAILED');
    assert.deepEqual(
      (await store.perform({ kind: 'ListKeys', platform: 'house', page: firstPage(9) })).items,
      [],
    );
    const find = (atS: number) => store.perform({ kind: 'FindAccessLink', sha256: link.sha256, nowS: atS });
    assert.equal((await find(linkEndS - 1))?.platform, 'house');
    assert.equal(await find(linkEndS), undefined);
    const claimAt = (createdAtS: number, sha256 = link.sha256) =>
      store.perform({ kind: 'ClaimAccess', sha256, key: newKey({ createdAtS }) });
    assert.equal(await claimAt(nowS, newAccessLink().sha256), undefined);
    assert.equal(await claimAt(linkEndS), undefined);
    const claims = await Promise.all([claimAt(nowS), claimAt(nowS), claimAt(nowS)]);
    const [key, ...more] = claims.filter((one) => one !== undefined);
    assert.deepEqual([key?.caller, key?.tier, key?.monthlyQuota, more], ['house', 'TRIAL', 1_000, []]);
    assert.deepEqual(store.findKey(key?.apiKey ?? ''), key);
    assert.equal(await find(nowS), undefined);
    assert.equal((await listed(store))[0]?.claimedAtS, nowS);
    const [entry] = await store.auditEntries();
    assert.deepEqual(
      [entry?.actor, entry?.action, entry?.subject],
      [`link of ${registrationId}`, 'key create', key?.keyId],
    );
  });

  storeTest('a platform that has a name is not approved again under it', async (store) => {
    await store.addPlatform('house');
    const { registrationId } = await store.preRegistered('one@example.com');
    const approval = { by, registrationId, platform, link: newAccessLink() };
    await refused(store.perform({ kind: 'ApproveRegistration', ...approval }), 'VALIDATION_FAILED');
    assert.equal((await listed(store))[0]?.platform, null);
  });

  storeTest(
    'a renewed link ends the one before, and a claimed one is renewed once its key is revoked',
    async (store) => {
      const { registrationId } = await store.preRegistered('one@example.com');
      const renew = (link = newAccessLink()) =>
        store.perform({ kind: 'RenewAccessLink', by, registrationId, link });
      await refused(renew(), 'VALIDATION_FAILED');
      const [first, second, third] = [newAccessLink(), newAccessLink(), newAccessLink()];
      await store.perform({ kind: 'ApproveRegistration', by, registrationId, platform, link: first });
      await renew(second);
      const claimWith = ({ sha256 }: typeof first) =>
        store.perform({ kind: 'ClaimAccess', sha256, key: newKey() });
      assert.equal(await claimWith(first), undefined);
      const lost = (await claimWith(second)) ?? assert.fail();
      await refused(renew(third), 'VALIDATION_FAILED');
      await store.setKeyStatus(lost.keyId, 'SUSPENDED');
      await refused(renew(third), 'VALIDATION_FAILED');
      await store.setKeyStatus(lost.keyId, 'REVOKED');
      assert.equal((await renew(third)).claimedAtS, null);
      assert.equal(await claimWith(second), undefined);
      assert.equal((await claimWith(third))?.caller, 'house');
    },
  );

  storeTest(
    'notices are claimed in the order of arrival, one at a time, each for one attempt',
    async (store) => {
      for (const name of ['one', 'two', 'three']) await store.preRegistered(`${name}@example.com`);
      const first = await claim(store, 'a1', 1_000);
      assert.ok(first.next === 'SEND');
      const { registrationId } = first.registration;
      assert.deepEqual([first.registration.email, first.registration.notice], ['one@example.com', 'SENDING']);
      assert.deepEqual(await claim(store, 'a2', 1_899), { next: 'BUSY' });
      // Another attempt has no say.
      assert.equal(await record(store, registrationId, 'a2', 'SENT'), 2);
      assert.deepEqual(await emails(store, 'SENDING'), ['one@example.com']);
      assert.equal(await record(store, registrationId, 'a1', 'NOT_SENT'), 3);
      const second = await claim(store, 'a3', 1_001);
      assert.ok(second.next === 'SEND');
      assert.equal(second.registration.email, 'one@example.com');
      assert.equal(await record(store, registrationId, 'a1', 'BOUNCED'), 2);
      assert.equal(await record(store, registrationId, 'a3', 'SENT'), 2);
      // A result is final.
      await record(store, registrationId, 'a3', 'NOT_SENT');
      assert.deepEqual(
        [await emails(store, 'SENT'), await emails(store, 'DUE')],
        [['one@example.com'], ['two@example.com', 'three@example.com']],
      );
      for (const result of ['BOUNCED', 'UNKNOWN'] as const) {
        const next = await claim(store, result, 1_002);
        assert.ok(next.next === 'SEND');
        await record(store, next.registration.registrationId, result, result);
      }
      assert.deepEqual(await claim(store, 'a4', 9_999), { next: 'DONE' });
      assert.deepEqual(
        (await listed(store)).map(({ notice, noticeAtS }) => [notice, noticeAtS]),
        [
          ['SENT', 50],
          ['BOUNCED', 50],
          ['UNKNOWN', 50],
        ],
      );
    },
  );

  storeTest(
    'an attempt without a result becomes UNKNOWN, and only its own late result replaces that',
    async (store) => {
      for (const name of ['one', 'two']) await store.preRegistered(`${name}@example.com`);
      await claim(store, 'a1', 1_000);
      const dead = await claim(store, 'a2', 1_900);
      assert.ok(dead.next === 'UNKNOWN');
      const { registrationId, email, notice, noticeDetail } = dead.registration;
      assert.deepEqual([email, notice], ['one@example.com', 'UNKNOWN']);
      assert.equal(noticeDetail, 'the server stopped before the mail server had answered');
      const next = await claim(store, 'a3', 1_900);
      assert.ok(next.next === 'SEND');
      assert.equal(next.registration.email, 'two@example.com');
      await record(store, registrationId, 'a3', 'SENT');
      assert.deepEqual(await emails(store, 'UNKNOWN'), ['one@example.com']);
      await record(store, registrationId, 'a1', 'SENT');
      assert.deepEqual(
        [await emails(store, 'SENT'), await emails(store, 'SENDING')],
        [['one@example.com'], ['two@example.com']],
      );
    },
  );

  storeTest('a notice is marked as bounced, and one that was due is then not sent', async (store) => {
    const { registrationId } = await store.preRegistered('one@example.com');
    const skipped = await store.preRegistered('two@example.com');
    const mark = (id: string) =>
      store.perform({ kind: 'MarkBounced', by, registrationId: id, detail: 'user unknown' });
    await claim(store, 'a1', 1_000);
    await refused(mark(registrationId), 'VALIDATION_FAILED');
    await record(store, registrationId, 'a1', 'UNKNOWN');
    const { notice, noticeDetail, noticeAtS } = await mark(registrationId);
    assert.deepEqual([notice, noticeDetail, noticeAtS], ['BOUNCED', 'user unknown', tester.atS]);
    await mark(skipped.registrationId);
    assert.deepEqual(await claim(store, 'a2', 1_000), { next: 'DONE' });
  });

  storeTest('a removed registration is gone, and its address never gets a second notice', async (store) => {
    const remove = (registrationId: string) =>
      store.perform({ kind: 'RemoveRegistration', by, registrationId });
    const before = await store.preRegistered('before@example.com');
    await remove(before.registrationId);
    await refused(remove(before.registrationId), 'NOT_FOUND');
    const { registrationId } = await store.preRegistered('one@example.com');
    await claim(store, 'a1', 1_000);
    await refused(remove(registrationId), 'VALIDATION_FAILED');
    await assert.rejects(remove(registrationId), /if that run was killed, send the notices again/);
    await record(store, registrationId, 'a1', 'SENT');
    const link = newAccessLink();
    await store.perform({ kind: 'ApproveRegistration', by, registrationId, platform, link });
    await remove(registrationId);
    assert.deepEqual(await listed(store), []);
    await refused(remove(registrationId), 'NOT_FOUND');
    assert.equal(await store.perform({ kind: 'ClaimAccess', sha256: link.sha256, key: newKey() }), undefined);
    assert.equal((await store.findPlatform('house'))?.caller, 'house');

    const again = newRegistration('ONE@example.com', { tier: 'TRIAL' });
    assert.ok(await store.perform({ kind: 'TakeForm', atS: 9, max: 9, registration: again }));
    const [back] = await listed(store);
    assert.deepEqual(
      [back?.email, back?.tier, back?.platform, back?.notice],
      ['ONE@example.com', 'TRIAL', null, 'SENT'],
    );
    assert.deepEqual(await claim(store, 'a2', 2_000), { next: 'DONE' });
  });

  storeTest('the late result of an attempt finds a registration that was removed', async (store) => {
    const remove = (registrationId: string) =>
      store.perform({ kind: 'RemoveRegistration', by, registrationId });
    const removedWhileUnknown = async (email: string, attempt: string) => {
      const { registrationId } = await store.preRegistered(email);
      await claim(store, attempt, 1_000);
      assert.equal((await claim(store, 'other', 1_900)).next, 'UNKNOWN');
      await remove(registrationId);
      return registrationId;
    };
    // The mail server did not take the mail: nothing is due, and the address can be registered like a new one.
    const unsent = await removedWhileUnknown('one@example.com', 'a1');
    assert.equal(await record(store, unsent, 'a1', 'NOT_SENT'), 0);
    assert.deepEqual(await claim(store, 'a2', 2_000), { next: 'DONE' });
    assert.equal((await store.preRegistered('one@example.com')).notice, null);
    await remove((await listed(store))[0]?.registrationId ?? '');
    // The words of the mail server may name the address.
    const sent = await removedWhileUnknown('two@example.com', 'a3');
    const words = { attempt: 'a3', result: 'SENT', detail: '250 two@example.com queued', nowS: 50 } as const;
    await store.perform({ kind: 'RecordNotice', registrationId: sent, ...words });
    const { notice, noticeDetail } = await store.preRegistered('two@example.com');
    assert.deepEqual([notice, noticeDetail], ['SENT', null]);
  });

  storeTest('a crash keeps who was sent a notice', async (store) => {
    for (const name of ['one', 'two']) await store.preRegistered(`${name}@example.com`);
    const first = await claim(store, 'a1', 1_000);
    assert.ok(first.next === 'SEND');
    await record(store, first.registration.registrationId, 'a1', 'SENT');
    await claim(store, 'a2', 1_000);
    const crashed = await store.openCrashed();
    assert.deepEqual(await emails(crashed, 'SENT'), ['one@example.com']);
    assert.equal((await claim(crashed, 'a3', 1_000, 1_000)).next, 'UNKNOWN');
    assert.deepEqual(await claim(crashed, 'a3', 1_000), { next: 'DONE' });
  });
}
