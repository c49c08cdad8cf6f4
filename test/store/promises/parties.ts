import assert from 'node:assert/strict';
import type { ApiError } from '../../../src/domain/reason.ts';
import { ValidationError } from '../../../src/domain/violation.ts';
import type { ImportedParty } from '../../../src/store/party-commands.ts';
import type { Command } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { allPages, anyParty, knownAs, neededNames, refused, toOpen, toRegister } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const later = { ...tester, atS: tester.atS + 60, reason: 'a new card' };
const another = { customer: 'cus_2', paymentMethod: 'pm_2' };

const listed = async (store: TestStore, filter: Partial<typeof anyParty> = {}) =>
  (
    await allPages(
      (page) => store.perform({ kind: 'ListParties', filter: { ...anyParty, ...filter }, page }),
      2,
    )
  ).flat();

const actsOf = async (store: TestStore) =>
  (await store.auditEntries())
    .filter(({ action }) => action.startsWith('party'))
    .map(({ actor, atS, action, subject, reason, before, after }) => ({
      ...{ actor, atS, reason, action, subject },
      ...{ before: before && JSON.parse(before), after: after && JSON.parse(after) },
    }))
    .reverse();

const imported = (caller: string, party: Partial<ImportedParty> = {}): ImportedParty => ({
  ...{ role: 'BUYER', partyId: 'buyer-1', providerIds: knownAs.BUYER, caller },
  ...party,
});

const toImport = (
  parties: readonly ImportedParty[],
  over: Partial<Command<'ImportParties'>> = {},
): Command<'ImportParties'> => ({
  ...{ kind: 'ImportParties', parties, violations: [], isTrial: false, by: later },
  callers: parties.map(({ caller }) => ({ caller, field: `the name ${caller}` })),
  ...over,
});

/** The fields that a command is refused for. */
async function fieldsRefused(promise: Promise<unknown>): Promise<readonly string[]> {
  const error = await promise.then(
    () => assert.fail('it was not refused'),
    (cause) => cause,
  );
  assert.ok(error instanceof ValidationError, String(error));
  assert.equal(error.reason, 'VALIDATION_FAILED');
  return error.violations.map(({ field }) => field);
}

/** Whom the buyerIds and sellerIds of each platform name. */
export function partyPromises({ test }: StoreTests): void {
  test('a party is registered for a platform or an internal system and returned as given', async (store) => {
    await store.addService('ledger');
    const buyer = { role: 'BUYER', partyId: ' 买方 \u{1F58C}', providerIds: knownAs.BUYER } as const;
    const seller = { role: 'SELLER', partyId: 'seller-1', providerIds: knownAs.SELLER } as const;
    const added = { addedAtS: tester.atS };
    assert.deepEqual(await store.perform(toRegister('gallery', buyer)), {
      ...{ caller: 'gallery', ...buyer, ...added },
    });
    await store.perform(toRegister('ledger', seller));
    await store.perform(toRegister('gallery', { partyId: 'seller-1' }));
    assert.deepEqual(await listed(store), [
      { caller: 'gallery', ...buyer, ...added },
      { caller: 'ledger', ...seller, ...added },
      { caller: 'gallery', role: 'BUYER', partyId: 'seller-1', providerIds: knownAs.BUYER, ...added },
    ]);
    assert.equal((await listed(store, { caller: 'gallery' })).length, 2);
    assert.equal((await listed(store, { role: 'SELLER' })).length, 1);
    assert.equal((await listed(store, { caller: 'gallery', role: 'SELLER' })).length, 0);
  });

  test('an unknown caller has no parties', async (store) => {
    for (const caller of ['', 'Gallery', 'ledger']) {
      await refused(store.perform(toRegister(caller)), 'NOT_FOUND');
      await refused(
        store.perform({ kind: 'RemoveParty', caller, role: 'BUYER', partyId: 'buyer-1', by: tester }),
        'NOT_FOUND',
      );
      await refused(listed(store, { caller }), 'NOT_FOUND');
    }
    assert.deepEqual(await actsOf(store), []);
  });

  test('a party is replaced and removed', async (store) => {
    await store.perform(toRegister('gallery'));
    const again = await store.perform(toRegister('gallery', {}, later));
    assert.equal(again.addedAtS, tester.atS, 'it is the same party');
    await store.perform(toRegister('gallery', { providerIds: another }, later));
    const known = { caller: 'gallery', role: 'BUYER', partyId: 'buyer-1', providerIds: another } as const;
    assert.deepEqual(await listed(store), [{ ...known, addedAtS: later.atS }]);
    const { caller, role, partyId } = known;
    const remove = { kind: 'RemoveParty', caller, role, partyId, by: later } as const;
    assert.deepEqual(await store.perform(remove), { ...known, addedAtS: later.atS });
    assert.deepEqual(await listed(store), []);
    await refused(store.perform(remove), 'NOT_FOUND');
  });

  test('an order needs parties of its platform, and the error does not reveal those of others', async (store) => {
    const mine = store.gallery;
    const other = await store.addPlatform('auction house');
    await store.registerBoth('gallery');
    const parties = neededNames;
    const open = async (by: typeof mine, filingNo: string, over: Partial<Command<'OpenEscrow'>> = {}) =>
      store.perform(toOpen(by, filingNo, { parties, ...over }));
    const [mineFiled, otherFiled] = [await store.fileOne(mine), await store.fileOne(other)];
    const foreign = open(other, otherFiled);
    assert.deepEqual(await fieldsRefused(foreign), ['buyerId', 'sellerId']);
    const nobodys = open(other, otherFiled, {
      terms: { ...toOpen(other, otherFiled).terms, buyerId: 'b', sellerId: 's' },
    });
    const messageOf = (promise: Promise<unknown>) => promise.catch(({ message }) => message);
    assert.equal(await messageOf(foreign), await messageOf(nobodys));
    // Not even by the filing of a platform can another one ask for its parties.
    assert.deepEqual(await fieldsRefused(open(other, mineFiled)), ['buyerId', 'sellerId']);
    await store.registerBoth('auction house');
    await refused(open(other, mineFiled), 'PERMISSION_DENIED');
    await refused(open(other, 'AS-2026-000099'), 'FILING_NOT_FOUND');
    const violations = [{ field: 'amount', rule: 'is too much' }];
    const strange = { terms: { ...toOpen(mine, mineFiled).terms, buyerId: 'b' }, violations };
    assert.deepEqual(await fieldsRefused(open(mine, mineFiled, strange)), ['amount', 'buyerId']);
    // An internal system may sell what a platform filed, between the parties of that platform.
    const ledger = await store.addService('ledger');
    await store.perform(toRegister('ledger', { providerIds: another }));
    const { order } = await store.perform(toOpen(ledger, mineFiled, { parties, owner: undefined }));
    assert.deepEqual((await store.caseOf(order.escrowId)).buyer, knownAs.BUYER);
    await refused(
      store.perform(toOpen(ledger, 'AS-2026-000099', { parties, owner: undefined })),
      'FILING_NOT_FOUND',
    );
  });

  test('an order needs all provider ids of its parties', async (store) => {
    await store.registerBoth('gallery');
    const parties = { BUYER: ['user', 'wallet'], SELLER: ['account'] };
    const filingNo = await store.fileOne(store.gallery);
    assert.deepEqual(await fieldsRefused(store.perform(toOpen(store.gallery, filingNo, { parties }))), [
      'buyerId',
    ]);
    await store.perform(toRegister('gallery', { providerIds: { user: 'u', wallet: 'w' } }));
    await store.perform(toOpen(store.gallery, filingNo, { parties }));
  });

  test('an order whose buyer and seller are the same at the provider is rejected', async (store) => {
    const filingNo = await store.fileOne(store.gallery);
    const parties = { BUYER: ['user', 'wallet'], SELLER: ['user', 'wallet'] };
    const open = () => store.perform(toOpen(store.gallery, filingNo, { parties }));
    await store.perform(toRegister('gallery', { providerIds: { user: 'u1', wallet: 'w1' } }));
    for (const [providerIds, same] of [
      [{ user: 'u1', wallet: 'w1' }, 'user and wallet'],
      [{ user: 'u1', wallet: 'w2' }, 'user'],
      [{ user: 'u2', wallet: 'w1' }, 'wallet'],
    ] as const) {
      await store.perform(toRegister('gallery', { role: 'SELLER', providerIds }));
      await assert.rejects(open(), (error: ApiError) => {
        assert.equal(error.reason, 'VALIDATION_FAILED');
        assert.match(
          error.message,
          new RegExp(`sellerId must differ from buyerId .*: .* the same ${same}\\.?$`),
        );
        return true;
      });
    }
    // A name of one kind is no other's of another kind.
    await store.perform(toRegister('gallery', { role: 'SELLER', providerIds: { user: 'w1', wallet: 'u1' } }));
    assert.equal((await open()).order.state, 'UNPAID');
  });

  test('an order keeps its parties after they are replaced or removed', async (store) => {
    await store.registerBoth('gallery');
    const filingNo = await store.fileOne(store.gallery);
    const { order } = await store.perform(toOpen(store.gallery, filingNo, { parties: neededNames }));
    const partiesOf = async () => {
      const { buyer, seller } = await store.caseOf(order.escrowId);
      return { BUYER: buyer, SELLER: seller };
    };
    assert.deepEqual(await partiesOf(), knownAs);
    await store.perform(toRegister('gallery', { providerIds: another }));
    await store.perform({
      ...{ kind: 'RemoveParty', caller: 'gallery', role: 'SELLER', partyId: 'seller-1', by: tester },
    });
    assert.deepEqual(await partiesOf(), knownAs);
    await store.settled(order.escrowId, { to: 'CLOSED' });
    assert.deepEqual(await partiesOf(), knownAs);
    const again = toOpen(store.gallery, filingNo, { parties: neededNames });
    assert.deepEqual(await fieldsRefused(store.perform(again)), ['sellerId']);
  });

  test('an order without registered parties has those of the caller that filed the artwork', async (store) => {
    await store.addPlatform('auction house');
    const ledger = await store.addService('ledger');
    const filingNo = await store.fileOne(store.gallery);
    const { order } = await store.perform(toOpen(ledger, filingNo, { owner: undefined }));
    const partiesOf = async () => {
      const { buyer, seller } = await store.caseOf(order.escrowId);
      return [buyer, seller];
    };
    for (const caller of ['auction house', 'ledger']) await store.registerBoth(caller);
    assert.deepEqual(await partiesOf(), [undefined, undefined]);
    await store.perform(toRegister('gallery', { providerIds: another }));
    assert.deepEqual(await partiesOf(), [another, undefined]);
    await store.perform(toRegister('gallery', { role: 'SELLER' }));
    assert.deepEqual(await partiesOf(), [another, knownAs.SELLER]);
  });

  test('an import adds and replaces, removes nothing, and has one audit entry, and one per replaced party', async (store) => {
    await store.addPlatform('auction house');
    for (const partyId of ['same', 'changed', 'left'])
      await store.perform(toRegister('gallery', { partyId }));
    const before = await listed(store);
    const parties = [
      imported('gallery', { partyId: 'same' }),
      imported('gallery', { partyId: 'changed', providerIds: another }),
      imported('gallery', { partyId: 'new' }),
      imported('auction house', { partyId: 'changed' }),
    ];
    const counts = { added: 2, replaced: 1, unchanged: 1 };
    assert.deepEqual(await store.perform(toImport(parties, { isTrial: true })), counts);
    assert.deepEqual(await listed(store), before, 'a trial changes nothing');
    assert.deepEqual(await store.perform(toImport(parties)), counts);
    assert.deepEqual(
      (await listed(store)).map(({ caller, partyId, providerIds }) => [caller, partyId, providerIds]),
      [
        ['gallery', 'same', knownAs.BUYER],
        ['gallery', 'left', knownAs.BUYER],
        ['gallery', 'changed', another],
        ['gallery', 'new', knownAs.BUYER],
        ['auction house', 'changed', knownAs.BUYER],
      ],
    );
    assert.deepEqual(await store.perform(toImport(parties)), { added: 0, replaced: 0, unchanged: 4 });
    assert.deepEqual((await actsOf(store)).slice(3), [
      {
        ...later,
        action: 'party import',
        subject: 'buyer changed of gallery',
        before: knownAs.BUYER,
        after: another,
      },
      {
        ...later,
        action: 'party import',
        subject: 'gallery, auction house',
        before: undefined,
        after: counts,
      },
    ]);
  });

  test('an import is rejected with all violations and changes nothing', async (store) => {
    const parties = [
      imported('gallery'),
      imported('nobody'),
      imported('nobody', { partyId: 'b' }),
      imported('gone'),
    ];
    const violations = [{ field: 'a place', rule: 'is wrong' }];
    for (const isTrial of [true, false]) {
      assert.deepEqual(await fieldsRefused(store.perform(toImport(parties, { violations, isTrial }))), [
        'a place',
        'the name nobody',
        'the name gone',
      ]);
    }
    assert.deepEqual([await listed(store), await actsOf(store)], [[], []]);
  });
}
