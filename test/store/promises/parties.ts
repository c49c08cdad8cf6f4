import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiError } from '../../../src/domain/reason.ts';
import { ValidationError } from '../../../src/domain/violation.ts';
import type { ImportedParty } from '../../../src/store/party-commands.ts';
import { type Command, perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  addPlatform,
  addService,
  allPages,
  anyParty,
  auditEntries,
  caseOf,
  fileOne,
  knownAs,
  neededNames,
  openGallery,
  openStore,
  refused,
  registerBoth,
  type StoreEngine,
  settled,
  toOpen,
  toRegister,
} from './fixtures.ts';

const later = { ...tester, atS: tester.atS + 60, reason: 'a new card' };
const another = { customer: 'cus_2', paymentMethod: 'pm_2' };

const listed = async (store: Store, filter: Partial<typeof anyParty> = {}) =>
  (
    await allPages(
      (page) => perform(store, { kind: 'ListParties', filter: { ...anyParty, ...filter }, page }),
      2,
    )
  ).flat();

const actsOf = async (store: Store) =>
  (await auditEntries(store))
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
export function partyPromises(engine: StoreEngine): void {
  test('a party is registered for a platform or an internal system and returned as given', async (t) => {
    const store = await openStore(t, engine);
    await addPlatform(store, 'gallery');
    await addService(store, 'ledger');
    const buyer = { role: 'BUYER', partyId: ' 买方 \u{1F58C}', providerIds: knownAs.BUYER } as const;
    const seller = { role: 'SELLER', partyId: 'seller-1', providerIds: knownAs.SELLER } as const;
    const added = { addedAtS: tester.atS };
    assert.deepEqual(await perform(store, toRegister('gallery', buyer)), {
      ...{ caller: 'gallery', ...buyer, ...added },
    });
    await perform(store, toRegister('ledger', seller));
    await perform(store, toRegister('gallery', { partyId: 'seller-1' }));
    assert.deepEqual(await listed(store), [
      { caller: 'gallery', ...buyer, ...added },
      { caller: 'ledger', ...seller, ...added },
      { caller: 'gallery', role: 'BUYER', partyId: 'seller-1', providerIds: knownAs.BUYER, ...added },
    ]);
    assert.equal((await listed(store, { caller: 'gallery' })).length, 2);
    assert.equal((await listed(store, { role: 'SELLER' })).length, 1);
    assert.equal((await listed(store, { caller: 'gallery', role: 'SELLER' })).length, 0);
  });

  test('an unknown caller has no parties', async (t) => {
    const store = await openStore(t, engine);
    await addPlatform(store, 'gallery');
    for (const caller of ['', 'Gallery', 'ledger']) {
      await refused(perform(store, toRegister(caller)), 'NOT_FOUND');
      await refused(
        perform(store, { kind: 'RemoveParty', caller, role: 'BUYER', partyId: 'buyer-1', by: tester }),
        'NOT_FOUND',
      );
      await refused(listed(store, { caller }), 'NOT_FOUND');
    }
    assert.deepEqual(await actsOf(store), []);
  });

  test('a party is replaced and removed, and each change has an audit entry', async (t) => {
    const store = await openStore(t, engine);
    await addPlatform(store, 'gallery');
    await perform(store, toRegister('gallery'));
    const again = await perform(store, toRegister('gallery', {}, later));
    assert.equal(again.addedAtS, tester.atS, 'it is the same party');
    await perform(store, toRegister('gallery', { providerIds: another }, later));
    const known = { caller: 'gallery', role: 'BUYER', partyId: 'buyer-1', providerIds: another } as const;
    assert.deepEqual(await listed(store), [{ ...known, addedAtS: later.atS }]);
    const { caller, role, partyId } = known;
    const remove = { kind: 'RemoveParty', caller, role, partyId, by: later } as const;
    assert.deepEqual(await perform(store, remove), { ...known, addedAtS: later.atS });
    assert.deepEqual(await listed(store), []);
    await refused(perform(store, remove), 'NOT_FOUND');
    await perform(store, toRegister('gallery', {}, later));
    const subject = 'buyer buyer-1 of gallery';
    assert.deepEqual(await actsOf(store), [
      { ...tester, action: 'party add', subject, before: undefined, after: knownAs.BUYER },
      { ...later, action: 'party add', subject, before: knownAs.BUYER, after: another },
      { ...later, action: 'party remove', subject, before: another, after: undefined },
      { ...later, action: 'party add', subject, before: undefined, after: knownAs.BUYER },
    ]);
  });

  test('an order needs parties of its platform, and the error does not reveal those of others', async (t) => {
    const { store, by: mine } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    await registerBoth(store, 'gallery');
    const parties = neededNames;
    const open = async (by: typeof mine, filingNo: string, over: Partial<Command<'OpenEscrow'>> = {}) =>
      perform(store, toOpen(by, filingNo, { parties, ...over }));
    const [mineFiled, otherFiled] = [await fileOne(store, mine), await fileOne(store, other)];
    const foreign = open(other, otherFiled);
    assert.deepEqual(await fieldsRefused(foreign), ['buyerId', 'sellerId']);
    const nobodys = open(other, otherFiled, {
      terms: { ...toOpen(other, otherFiled).terms, buyerId: 'b', sellerId: 's' },
    });
    const messageOf = (promise: Promise<unknown>) => promise.catch(({ message }) => message);
    assert.equal(await messageOf(foreign), await messageOf(nobodys));
    // Not even by the filing of a platform can another one ask for its parties.
    assert.deepEqual(await fieldsRefused(open(other, mineFiled)), ['buyerId', 'sellerId']);
    await registerBoth(store, 'auction house');
    await refused(open(other, mineFiled), 'PERMISSION_DENIED');
    await refused(open(other, 'AS-2026-000099'), 'FILING_NOT_FOUND');
    const violations = [{ field: 'amount', rule: 'is too much' }];
    const strange = { terms: { ...toOpen(mine, mineFiled).terms, buyerId: 'b' }, violations };
    assert.deepEqual(await fieldsRefused(open(mine, mineFiled, strange)), ['amount', 'buyerId']);
    // An internal system may sell what a platform filed, between the parties of that platform.
    const ledger = await addService(store, 'ledger');
    await perform(store, toRegister('ledger', { providerIds: another }));
    const { order } = await perform(store, toOpen(ledger, mineFiled, { parties, owner: undefined }));
    assert.deepEqual((await caseOf(store, order.escrowId)).buyer, knownAs.BUYER);
    await refused(
      perform(store, toOpen(ledger, 'AS-2026-000099', { parties, owner: undefined })),
      'FILING_NOT_FOUND',
    );
  });

  test('an order needs all provider ids of its parties', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await registerBoth(store, 'gallery');
    const parties = { BUYER: ['user', 'wallet'], SELLER: ['account'] };
    const filingNo = await fileOne(store, by);
    assert.deepEqual(await fieldsRefused(perform(store, toOpen(by, filingNo, { parties }))), ['buyerId']);
    await perform(store, toRegister('gallery', { providerIds: { user: 'u', wallet: 'w' } }));
    await perform(store, toOpen(by, filingNo, { parties }));
  });

  test('an order whose buyer and seller are the same at the provider is rejected', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filingNo = await fileOne(store, by);
    const parties = { BUYER: ['user', 'wallet'], SELLER: ['user', 'wallet'] };
    const open = () => perform(store, toOpen(by, filingNo, { parties }));
    await perform(store, toRegister('gallery', { providerIds: { user: 'u1', wallet: 'w1' } }));
    for (const [providerIds, same] of [
      [{ user: 'u1', wallet: 'w1' }, 'user and wallet'],
      [{ user: 'u1', wallet: 'w2' }, 'user'],
      [{ user: 'u2', wallet: 'w1' }, 'wallet'],
    ] as const) {
      await perform(store, toRegister('gallery', { role: 'SELLER', providerIds }));
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
    await perform(
      store,
      toRegister('gallery', { role: 'SELLER', providerIds: { user: 'w1', wallet: 'u1' } }),
    );
    assert.equal((await open()).order.state, 'UNPAID');
  });

  test('an order keeps its parties after they are replaced or removed', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await registerBoth(store, 'gallery');
    const filingNo = await fileOne(store, by);
    const { order } = await perform(store, toOpen(by, filingNo, { parties: neededNames }));
    const partiesOf = async () => {
      const { buyer, seller } = await caseOf(store, order.escrowId);
      return { BUYER: buyer, SELLER: seller };
    };
    assert.deepEqual(await partiesOf(), knownAs);
    await perform(store, toRegister('gallery', { providerIds: another }));
    await perform(store, {
      ...{ kind: 'RemoveParty', caller: 'gallery', role: 'SELLER', partyId: 'seller-1', by: tester },
    });
    assert.deepEqual(await partiesOf(), knownAs);
    await settled(store, order.escrowId, { to: 'CLOSED' });
    assert.deepEqual(await partiesOf(), knownAs);
    const again = toOpen(by, filingNo, { parties: neededNames });
    assert.deepEqual(await fieldsRefused(perform(store, again)), ['sellerId']);
  });

  test('an order without registered parties has those of the caller that filed the artwork', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await addPlatform(store, 'auction house');
    const ledger = await addService(store, 'ledger');
    const filingNo = await fileOne(store, by);
    const { order } = await perform(store, toOpen(ledger, filingNo, { owner: undefined }));
    const partiesOf = async () => {
      const { buyer, seller } = await caseOf(store, order.escrowId);
      return [buyer, seller];
    };
    for (const caller of ['auction house', 'ledger']) await registerBoth(store, caller);
    assert.deepEqual(await partiesOf(), [undefined, undefined]);
    await perform(store, toRegister('gallery', { providerIds: another }));
    assert.deepEqual(await partiesOf(), [another, undefined]);
    await perform(store, toRegister('gallery', { role: 'SELLER' }));
    assert.deepEqual(await partiesOf(), [another, knownAs.SELLER]);
  });

  test('an import adds and replaces, removes nothing, and has one audit entry, and one per replaced party', async (t) => {
    const store = await openStore(t, engine);
    for (const name of ['gallery', 'auction house']) await addPlatform(store, name);
    for (const partyId of ['same', 'changed', 'left'])
      await perform(store, toRegister('gallery', { partyId }));
    const before = await listed(store);
    const parties = [
      imported('gallery', { partyId: 'same' }),
      imported('gallery', { partyId: 'changed', providerIds: another }),
      imported('gallery', { partyId: 'new' }),
      imported('auction house', { partyId: 'changed' }),
    ];
    const counts = { added: 2, replaced: 1, unchanged: 1 };
    assert.deepEqual(await perform(store, toImport(parties, { isTrial: true })), counts);
    assert.deepEqual(await listed(store), before, 'a trial changes nothing');
    assert.deepEqual(await perform(store, toImport(parties)), counts);
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
    assert.deepEqual(await perform(store, toImport(parties)), { added: 0, replaced: 0, unchanged: 4 });
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

  test('an import is rejected with all violations and changes nothing', async (t) => {
    const store = await openStore(t, engine);
    await addPlatform(store, 'gallery');
    const parties = [
      imported('gallery'),
      imported('nobody'),
      imported('nobody', { partyId: 'b' }),
      imported('gone'),
    ];
    const violations = [{ field: 'a place', rule: 'is wrong' }];
    for (const isTrial of [true, false]) {
      assert.deepEqual(await fieldsRefused(perform(store, toImport(parties, { violations, isTrial }))), [
        'a place',
        'the name nobody',
        'the name gone',
      ]);
    }
    assert.deepEqual([await listed(store), await actsOf(store)], [[], []]);
  });
}
