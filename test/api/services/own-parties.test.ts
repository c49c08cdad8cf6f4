import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { create, type DescMethodUnary, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import pino from 'pino';
import { AdminService, Party_Role } from '../../../gen/artseal/v1/admin_pb.ts';
import { Escrow_Type, EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { createBearerCheck } from '../../../src/api/authentication.ts';
import type { Principal } from '../../../src/api/principal.ts';
import { createService } from '../../../src/app/service.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import type { PartyRole } from '../../../src/domain/escrow-terms.ts';
import type { ProviderIds } from '../../../src/domain/party.ts';
import type { PaymentSnapshot } from '../../../src/domain/payment.ts';
import { ApiError } from '../../../src/domain/reason.ts';
import type { TokenTerms } from '../../../src/domain/token.ts';
import { createIssuance } from '../../../src/keys/issuance.ts';
import { createKeyRing } from '../../../src/keys/key-ring.ts';
import type { PaymentInstruction, PaymentOrder, PaymentProvider } from '../../../src/payments/provider.ts';
import { reconciliationLimits } from '../../../src/payments/reconciliation/limits.ts';
import { stripe } from '../../../src/payments/stripe/settings.ts';
import { createSqliteStore } from '../../../src/store/sqlite/engine.ts';
import { executorOf } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { createTestPublication } from '../../support/publication.ts';
import { createRandom, type Random } from '../../support/random.ts';
import { artwork } from '../../support/samples.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { operatorTerms, tokenTerms } from '../../support/tokens.ts';

/** Concurrent calls of each kind, 200 in all, so that they share commits; and the number of rounds. */
const callsOf = { parties: 30, opening: 110, resolving: 40, filing: 30 } as const;
const roundsMade = 8;
/** Of this many instructions, one does not arrive and one is not answered. */
const instructionsPerFault = 20;
/** The ids that every caller gives its buyers and sellers. */
const ids = ['1', '2', '3', '4', '5', '6'];
/** Turns of the event loop in which reconciliation finishes what is due. */
const turnsToRecover = 60;

/** The parties of a request to the provider. */
interface ProviderRequest extends Pick<PaymentOrder, 'escrowId' | 'buyer' | 'seller'> {}

/** A provider that accepts all parties, and loses requests and responses. */
function openBank({ below }: Random): PaymentProvider & { readonly requests: ProviderRequest[] } {
  const requests: ProviderRequest[] = [];
  const holds = new Map<string, PaymentSnapshot['status']>();
  const snapshot = ({ holdId, amount, currency }: PaymentOrder): PaymentSnapshot => {
    const status = holds.get(holdId) ?? 'ABSENT';
    return status === 'ABSENT' || status === 'VOID' ? { status } : { status, amount, currency };
  };
  const after = { FREEZE: 'HELD', RELEASE: 'PAID_OUT', REFUND: 'RETURNED', CANCEL: 'RETURNED' } as const;
  const carryOut = ({ holdId, kind }: PaymentInstruction) => {
    const status = holds.get(holdId);
    if (status === undefined && kind === 'CANCEL') holds.set(holdId, 'VOID');
    else if (status === (kind === 'FREEZE' ? undefined : 'HELD')) holds.set(holdId, after[kind]);
  };
  return {
    requests,
    checkAccess: async () => ({ kind: 'ACCEPTED' }),
    check: () => [],
    instruct: async (instruction) => {
      requests.push(instruction);
      const fault = below(instructionsPerFault);
      if (fault === 0) throw new Error('The request was lost.');
      carryOut(instruction);
      if (fault === 1) throw new Error('The answer was lost.');
      return snapshot(instruction);
    },
    lookUp: async (order) => {
      requests.push(order);
      return snapshot(order);
    },
    notificationMethod: 'POST',
    readNotification: () => assert.fail('nothing is notified'),
    close: async () => {},
  };
}

test('in 1,600 random calls, platforms with equal buyer ids never touch the money of each other', async (t) => {
  const random = createRandom();
  const { seed, below, pick } = random;
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, environment: 'sandbox', currency: 'CNY', opening: 'NEW' });
  const clock = createManualClock(Date.parse('2026-11-21T12:00:00Z'));
  const keyRing = createKeyRing([{ name: 'main', key: Buffer.alloc(32, 9) }]);
  const execute = executorOf(store);
  const bank = openBank(random);
  let named = 0;
  const newName = () => {
    named += 1;
    return `n${named}`;
  };
  const service = createService({
    ...{ store, keyRing, clock, provider: bank, partyRules: stripe.parties },
    ...{ environment: 'sandbox', currency: 'CNY', random: () => 0.5, newInstructionId: newName },
    calendar: createCalendar('UTC'),
    clockSetByS: () => 0,
    isRolledBack: () => false,
    limits: reconciliationLimits,
    webhooks: { networks: [], plainLoopback: false, proxy: undefined, authorities: undefined },
    publication: createTestPublication(),
    log: pino({ level: 'silent' }),
  });
  t.after(async () => {
    await service.stop();
    await store.close();
  });
  const issuance = createIssuance({ execute, keyRing, environment: 'sandbox', clock });
  const platform = async (name: string): Promise<Principal> => {
    const agreement = { name, tier: 'ENTERPRISE', monthlyQuota: undefined, unlimited: true } as const;
    const { callerId, caller, tier } = (await issuance.issueKey(agreement, tester)).key;
    return { kind: 'platform', callerId, caller, tier, monthlyQuota: undefined };
  };
  const internal = async (terms: TokenTerms) =>
    createBearerCheck(store, clock)(`Bearer ${(await issuance.issueToken(terms, tester)).token}`);
  const office = await internal(tokenTerms('office'));
  const operator = await internal(operatorTerms('operator'));
  const callers = [await platform('gallery'), await platform('museum'), await platform('auction'), office];
  await service.start();

  /** The response of a call, or its ApiError. */
  async function call<M extends DescMethodUnary>(
    principal: Principal,
    method: M,
    request: MessageInitShape<M['input']>,
  ): Promise<MessageShape<M['output']> | ApiError> {
    const message = create(method.input, request);
    try {
      const call = { principal, execute, executeNext: execute, pause: <T>(wait: () => Promise<T>) => wait() };
      const answer = await service.dispatcher.invoke(method, message, call);
      return answer as MessageShape<M['output']>;
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }

  /** The registered parties, by `keyOf`. */
  const parties = new Map<string, ProviderIds>();
  const keyOf = (caller: string, role: PartyRole, partyId: string) => `${caller} ${role} ${partyId}`;
  const filings: { readonly filingNo: string; readonly filedBy: Principal }[] = [];
  /** The parties that each order may have: the current ones, or those before a concurrent change. */
  const orders = new Map<
    string,
    { readonly buyers: readonly unknown[]; readonly sellers: readonly unknown[] }
  >();
  /** The parties of the first request about each order. */
  const firstParties = new Map<string, string>();
  const seen = { opened: 0, pending: 0, unknown: 0, foreign: 0, resolved: 0, requests: 0 };

  const namesFor = (caller: string, role: PartyRole): ProviderIds =>
    role === 'BUYER'
      ? { customer: `cus_${caller}${newName()}`, paymentMethod: `pm_${newName()}` }
      : { account: `acct_${caller}${newName()}` };

  /** A change of a party: its key, its new provider ids, and the call. */
  function partyChange() {
    const [{ caller }, role, partyId] = [pick(callers), pick(['BUYER', 'SELLER'] as const), pick(ids)];
    const key = keyOf(caller, role, partyId);
    const [isKnown, providerIds] = [parties.has(key), below(4) === 0 ? undefined : namesFor(caller, role)];
    const request = { caller, role: Party_Role[role], partyId };
    const { addParty, removeParty } = AdminService.method;
    const make = async () => {
      const answer = providerIds
        ? await call(operator, addParty, { ...request, providerIds: { ...providerIds } })
        : await call(operator, removeParty, request);
      assert.equal(answer instanceof ApiError, providerIds === undefined && !isKnown, key);
    };
    return { key, providerIds, make };
  }

  async function file(): Promise<void> {
    const filedBy = pick(callers);
    const answer = await call(filedBy, FilingService.method.createFiling, { ...artwork, price: 1n });
    assert.ok(!(answer instanceof ApiError));
    filings.push({ filingNo: answer.filingNo, filedBy });
  }

  /** Opens an order while the registered parties change to `next`. */
  async function open(next: ReadonlyMap<string, ProviderIds | undefined>): Promise<void> {
    const { filingNo, filedBy } = pick(filings.slice(-300));
    const opener = below(4) === 0 ? pick(callers) : filedBy;
    const [buyerId, sellerId] = [pick(ids), pick(ids)];
    const possible = (role: PartyRole, partyId: string) => {
      const key = keyOf(filedBy.caller, role, partyId);
      const providerIds = [parties.get(key), next.has(key) ? next.get(key) : parties.get(key)];
      return providerIds.map((one): unknown => one && JSON.stringify(one));
    };
    const [buyers, sellers] = [possible('BUYER', buyerId), possible('SELLER', sellerId)];
    const request = { filingNo, type: Escrow_Type.GUARANTEE, amount: 5_000n, buyerId, sellerId };
    const answer = await call(opener, EscrowService.method.createEscrow, request);
    if (answer instanceof ApiError && answer.reason !== 'PAYMENT_PENDING') {
      if (opener.kind === 'platform' && opener !== filedBy) seen.foreign += 1;
      else if (answer.reason === 'VALIDATION_FAILED') {
        seen.unknown += 1;
        assert.ok([...buyers, ...sellers].includes(undefined) || buyerId === sellerId, answer.message);
      } else assert.equal(answer.reason, 'ESCROW_ACTIVE', answer.message);
      return;
    }
    assert.ok(opener === filedBy || opener === office, `${opener.caller} sold what ${filedBy.caller} filed`);
    const escrowId = answer instanceof ApiError ? escrowIdIn(answer.message) : answer.escrowId;
    orders.set(escrowId, { buyers, sellers });
    seen[answer instanceof ApiError ? 'pending' : 'opened'] += 1;
  }

  async function resolve(): Promise<void> {
    const escrowId = pick([...orders.keys()].slice(-150));
    const { releaseEscrow, refundEscrow } = EscrowService.method;
    const answer = await call(pick(callers), pick([releaseEscrow, refundEscrow]), { escrowId });
    if (!(answer instanceof ApiError)) seen.resolved += 1;
  }

  /** Lets time pass, so that reconciliation looks up and repeats open instructions. */
  async function pass(): Promise<void> {
    clock.advance(5_000);
    for (let count = 0; count < turnsToRecover; count += 1) await turn();
  }

  function checkRequests(): void {
    for (const { escrowId, buyer, seller } of bank.requests.splice(0)) {
      const order = orders.get(escrowId) ?? assert.fail(`${escrowId} was rejected`);
      assert.ok(order.buyers.includes(JSON.stringify(buyer)), `${escrowId} charges a buyer of its own`);
      assert.ok(order.sellers.includes(JSON.stringify(seller)), `${escrowId} pays a seller of its own`);
      const providerIds = JSON.stringify([buyer, seller]);
      assert.equal(firstParties.get(escrowId) ?? providerIds, providerIds, `${escrowId} keeps its parties`);
      firstParties.set(escrowId, providerIds);
      seen.requests += 1;
    }
  }

  /** Concurrent calls. */
  async function round(): Promise<void> {
    const changes = new Map(
      Array.from({ length: callsOf.parties }, partyChange).map((change) => [change.key, change]),
    );
    const next = new Map([...changes].map(([key, { providerIds }]) => [key, providerIds]));
    await Promise.all([
      ...[...changes.values()].map(({ make }) => make()),
      ...Array.from({ length: callsOf.opening }, () => open(next)),
      ...Array.from({ length: orders.size === 0 ? 0 : callsOf.resolving }, resolve),
      ...Array.from({ length: callsOf.filing }, file),
    ]);
    for (const [key, providerIds] of next)
      if (providerIds === undefined) parties.delete(key);
      else parties.set(key, providerIds);
  }

  let rounds = 0;
  try {
    await file();
    for (; rounds < roundsMade; rounds += 1) {
      await round();
      if (below(2) === 0) await pass();
      checkRequests();
    }
    for (const [what, count] of Object.entries(seen)) assert.ok(count > 5, `${what}: ${count}`);
    t.diagnostic(`seed ${seed}: ${JSON.stringify(seen)}`);
  } catch (error) {
    throw new Error(`with ARTSEAL_TEST_SEED=${seed}, in round ${rounds}`, { cause: error });
  }
});

function escrowIdIn(message: string): string {
  const [escrowId] = /ES-\d{4}-\w{4}/.exec(message) ?? [];
  assert.ok(escrowId, message);
  return escrowId;
}
