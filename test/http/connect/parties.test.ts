import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Party_Role } from '../../../gen/artseal/v1/admin_pb.ts';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { stripeSettings } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { typedError } from '../../support/typed-clients.ts';

const { BUYER, SELLER } = Party_Role;
const buyer = { role: BUYER, partyId: 'buyer-1', providerIds: { customer: 'cus_1', paymentMethod: 'pm_1' } };
const seller = { role: SELLER, partyId: 'seller-1', providerIds: { account: 'acct_1' } };

/** A service whose provider needs registered parties, and an operator. */
async function started(t: Pick<TestContext, 'after'>, env = stripeSettings) {
  const provider = openTestProvider(t);
  const service = await startService(t, { provider, env, clock: createManualClock() });
  const { admin } = await service.operator();
  return { service, admin };
}

const { service, admin } = await started(fileScope);

/** The ids of the parties of a platform, as ListParties lists them. */
const partiesOf = async (caller: string) =>
  (await admin.listParties({ caller })).parties.map(({ partyId }) => partyId);

test('a rejected party names the fields that break a rule', async () => {
  const { caller } = await service.platform();
  const wrong: readonly (readonly [request: object, ...fields: string[]])[] = [
    [{ ...buyer, partyId: '' }, 'partyId'],
    [{ ...buyer, role: Party_Role.ROLE_UNSPECIFIED }, 'role'],
    [{ ...buyer, role: 9 }, 'role'],
    [{ ...buyer, providerIds: {} }, 'providerIds.customer', 'providerIds.paymentMethod'],
    [{ ...buyer, providerIds: { ...buyer.providerIds, account: 'acct_1' } }, 'providerIds'],
    [{ ...seller, providerIds: { account: 'acct_1 ' } }, 'providerIds.account'],
    [{ ...seller, providerIds: JSON.parse('{"account":"acct_1","__proto__":"x"}') }, 'providerIds'],
  ];
  for (const [request, ...fields] of wrong) {
    const { message } = await typedError(admin.addParty({ caller, ...request }), 'VALIDATION_FAILED');
    assert.deepEqual(
      message.split('; ').map((sentence) => sentence.split(' ')[0]),
      fields,
    );
  }
  await typedError(admin.addParty({ caller: 'nobody', ...buyer }), 'NOT_FOUND');
  await typedError(admin.removeParty({ caller, partyId: 'buyer-1' }), 'VALIDATION_FAILED');
  await typedError(admin.listParties({ caller, role: 9 as Party_Role }), 'VALIDATION_FAILED');
  await typedError(admin.listParties({ caller: 'nobody' }), 'NOT_FOUND');
  assert.deepEqual(await partiesOf(caller), []);
});

test('an import with a wrong, unknown or repeated party names each, and registers none', async () => {
  const { caller } = await service.platform();
  const parties = [
    { caller, ...buyer },
    { caller: 'nobody', ...buyer },
    { caller, ...seller, providerIds: {} },
    { caller, ...buyer },
  ];
  const { message } = await typedError(admin.importParties({ parties }), 'VALIDATION_FAILED');
  assert.deepEqual(
    message.split('; ').map((sentence) => sentence.split(' ')[0]),
    ['parties[2].providerIds.account', 'parties[3]', 'parties[1].caller'],
  );
  assert.deepEqual(await partiesOf(caller), []);
});

test('the simulated provider needs no registered parties, and rejects them', async (t) => {
  const simulated = await started(t, { ...stripeSettings, ARTSEAL_PAYMENT_PROVIDER: 'simulated' });
  const gallery = await simulated.service.platform();
  const { addParty, importParties } = simulated.admin;
  for (const call of [addParty({ caller: gallery.caller, ...seller }), importParties({})])
    assert.match((await typedError(call, 'VALIDATION_FAILED')).message, /needs no registered parties/);
  const { filingNo } = (await fileArtwork(simulated.service, gallery)).json;
  assert.equal((await openEscrow(simulated.service, gallery, filingNo)).status, 200);
});
