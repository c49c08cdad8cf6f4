import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Actor } from '../../../src/domain/audit-entry.ts';
import type { AgreementChange, KeyStatus, PlatformStatus } from '../../../src/domain/caller.ts';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import { appendLeaf, emptyTree, leafHash, rootOf } from '../../../src/domain/merkle.ts';
import type { NewParty } from '../../../src/domain/party.ts';
import { ApiError, type Reason } from '../../../src/domain/reason.ts';
import { emailKey } from '../../../src/domain/registration.ts';
import type { Decision } from '../../../src/domain/resolution.ts';
import type { NewKey, NewToken, StoredKey } from '../../../src/store/caller-commands.ts';
import type { EscrowFilter, Work } from '../../../src/store/escrow-commands.ts';
import type { BusinessTime, CallerRef, FilingFilter } from '../../../src/store/filing-commands.ts';
import type { InstanceFacts } from '../../../src/store/instance-commands.ts';
import type { NewLogKey } from '../../../src/store/log-commands.ts';
import type { Page, PageQuery } from '../../../src/store/paging.ts';
import type { PartyFilter } from '../../../src/store/party-commands.ts';
import type { CaseSelection, EscrowCase, OrderUpdate } from '../../../src/store/reconciliation-commands.ts';
import type {
  AccessLink,
  NewRegistration,
  NoticeResult,
  Registration,
} from '../../../src/store/registration-commands.ts';
import {
  type Admission,
  type Command,
  type Kind,
  perform,
  type Store,
  type StoreOptions,
  type StoreRequest,
} from '../../../src/store/store.ts';
import type { NewWebhook, StoredWebhook } from '../../../src/store/webhook-commands.ts';
import { tester } from '../../support/audit-log.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { businessScopes } from '../../support/tokens.ts';

/** An engine of the store. */
export interface StoreEngine {
  /** Opens the store of a folder, or creates it. */
  open(options: StoreOptions): Promise<Store>;
  /** Copies what an open store has kept as a crash at this moment would leave it; by default its folder. */
  copyAsCrashed?(dataDir: string, copy: string): void;
}

/** The options of stores in tests. */
export const sandbox = {
  environment: 'sandbox',
  currency: 'CNY',
  opening: 'EITHER',
} as const satisfies Partial<StoreOptions>;

/** What an instance on a host says of itself. */
export const instanceFacts = (host: string): InstanceFacts => ({
  ...{
    host,
    processId: process.pid,
    version: '1.0.0',
    sinceS: 1_800_000_000,
    provider: 'stripe',
    timeZone: 'Asia/Shanghai',
  },
  masterKeys: ['main 0123456789abcdef'],
});

/** Names all filings. */
export const anyFiling: FilingFilter = { owner: undefined, year: undefined };

/** Names all orders. */
export const anyOrder: EscrowFilter = { owner: undefined, state: undefined, filingNo: undefined };

/** Names all parties. */
export const anyParty: PartyFilter = { caller: undefined, role: undefined };

/** Selects the orders that wait for a person. */
export const inNeed: CaseSelection = { state: undefined, needsReview: true };

type Cleanup = Pick<TestContext, 'after'>;

/** Opens a store in a new folder or in a given one. It is closed after the test. */
export async function openStore(
  test: Cleanup,
  engine: StoreEngine,
  dataDir: string = temporaryFolder(test),
): Promise<Store> {
  const store = await engine.open({ dataDir, ...sandbox });
  test.after(() => store.close());
  return store;
}

/** Records that the provider did not respond about an order, which had so many notifications when it was asked. */
export async function unanswered(store: Store, escrowId: string, lookUpAtMs: number, notificationCount = 0) {
  const { lookUpAtMs: expectedLookUpAtMs } = await caseOf(store, escrowId);
  const asked = { escrowId, expectedLookUpAtMs, notificationCount };
  assert.ok(await perform(store, { kind: 'RecordUnanswered', ...asked, lookUpAtMs, nowMs: noon.atMs }));
}

/** Copies a folder as a crash at this moment would leave it. */
export function crashCopy(
  test: Cleanup,
  dataDir: string,
  copyAsCrashed: StoreEngine['copyAsCrashed'] = copyFolder,
): string {
  const copy = join(temporaryFolder(test), 'copy');
  copyAsCrashed(dataDir, copy);
  return copy;
}

/** An instant by its business timestamp. */
export function time(timestamp: string): BusinessTime {
  return { atMs: Date.parse(timestamp), timestamp };
}

/** An instant. */
export const noon = time('2026-11-21T12:00:00+00:00');

/** An artwork. */
export const painting = { ...artwork, price: BigInt(artwork.price) };

/** The terms of an order. */
export function terms(filingNo: string) {
  const { amount, ...rest } = escrowTerms(filingNo);
  return { ...rest, type: 'GUARANTEE', amount: BigInt(amount) } as const;
}

/** The name of a master key, NUL, and a seal. */
const newSeal = (): Buffer => Buffer.concat([Buffer.from('main\0'), randomBytes(60)]);

/** A new key. */
export function newKey(over: Partial<NewKey> = {}): NewKey {
  const word = randomBytes(8).toString('hex');
  return {
    keyId: `key_${word}`,
    apiKey: `ak_${word}`,
    sealedSecret: newSeal(),
    createdAtS: 1_790_000_000,
    ...over,
  };
}

/** A new key of the evidence log. */
export function newLogKey(over: Partial<NewLogKey> = {}): NewLogKey {
  const vkey = `log.example+${randomBytes(4).toString('hex')}+${randomBytes(33).toString('base64')}`;
  return { vkey, sealedSeed: newSeal(), addedAtS: 1_790_000_000, ...over };
}

/** A new token. */
export function newToken(over: Partial<NewToken> = {}): NewToken {
  const sha256 = randomBytes(32);
  const tokenId = `tok_${randomBytes(8).toString('hex')}`;
  const granted = { scopes: businessScopes, expiresAtS: null, platform: undefined };
  return { tokenId, sha256, ...granted, createdAtS: 1_790_000_000, ...over };
}

/** Registers a platform, by default without a quota. */
export function addPlatform(
  store: Store,
  name: string,
  agreement: Partial<Command<'AddPlatform'>['platform']> = {},
  key = newKey(),
): Promise<StoredKey> {
  const platform = { name, tier: 'ENTERPRISE', monthlyQuota: undefined, ...agreement } as const;
  return perform(store, { kind: 'AddPlatform', by: tester, platform, key });
}

/** Makes the agreement with a platform that of a TRIAL. */
export const toTrial: AgreementChange = { tier: 'TRIAL', monthlyQuota: undefined, unlimited: false };

/** The command to file an artwork. */
export function toFile({ callerId, caller }: CallerRef, at: BusinessTime = noon): Command<'FileArtwork'> {
  return { kind: 'FileArtwork', artwork: painting, at, by: { callerId, caller } };
}

/** Fails with an internal error when its row is written: there is no such caller. */
export const ofNobody = toFile({ callerId: 99, caller: 'nobody' });

/** Files an artwork; its number. */
export async function fileOne(store: Store, by: CallerRef, at: BusinessTime = noon): Promise<string> {
  const { filingNo } = await perform(store, toFile(by, at));
  return filingNo;
}

/** Accepts a time as an operator. */
export async function acceptClock(store: Store, { atMs }: BusinessTime): Promise<void> {
  await perform(store, { kind: 'AcceptClock', by: { ...tester, atS: Math.floor(atMs / 1_000) } });
}

/** The provider ids of the parties of `terms`. */
export const knownAs = {
  BUYER: { customer: 'cus_1', paymentMethod: 'pm_1' },
  SELLER: { account: 'acct_1' },
} as const;

/** The provider ids that a provider needs. */
export const neededNames = { BUYER: ['customer', 'paymentMethod'], SELLER: ['account'] } as const;

/** The command to register a party of a caller: the buyer of `terms`, unless another one is given. */
export function toRegister(
  caller: string,
  party: Partial<NewParty> = {},
  by: Actor = tester,
): Command<'AddParty'> {
  const { role = 'BUYER' } = party;
  const partyId = role === 'BUYER' ? 'buyer-1' : 'seller-1';
  return { kind: 'AddParty', caller, party: { role, partyId, providerIds: knownAs[role], ...party }, by };
}

/** A new instruction id for a caller. */
export function workOf({ callerId, caller }: CallerRef): Work {
  return { callerId, caller, instructionId: randomUUID() };
}

/** The command to open an order for a filing of its caller. */
export function toOpen(
  by: CallerRef,
  filingNo: string,
  over: Partial<Command<'OpenEscrow'>> = {},
): Command<'OpenEscrow'> {
  const owner = by.callerId;
  return {
    ...{
      kind: 'OpenEscrow',
      terms: terms(filingNo),
      violations: [],
      parties: undefined,
      at: noon,
      work: workOf(by),
      owner,
    },
    ...over,
  };
}

/** The command to pay the money of an order out or back. */
export function toResolve(
  by: CallerRef,
  resolution: 'RELEASE' | 'REFUND',
  escrowId: string,
  over: Partial<Command<'PrepareResolution'>> = {},
): Command<'PrepareResolution'> {
  const work = workOf(by);
  return { kind: 'PrepareResolution', resolution, escrowId, at: noon, work, owner: undefined, ...over };
}

/** An order of a test. */
export interface TestOrder {
  readonly escrowId: string;
  readonly filingNo: string;
  /** The instruction id of its FREEZE. */
  readonly holdId: string;
}

/** Opens an order: for a new filing, or for a given one. */
export async function opened(store: Store, by: CallerRef, filingNo?: string): Promise<TestOrder> {
  const number = filingNo ?? (await fileOne(store, by));
  const { instructionId, order } = await perform(store, toOpen(by, number));
  return { escrowId: order.escrowId, filingNo: number, holdId: instructionId };
}

/** An order as its reconciliation sees it. */
export async function caseOf(store: Store, escrowId: string): Promise<EscrowCase> {
  const found = await perform(store, { kind: 'FindCase', escrowId });
  assert.ok(found, escrowId);
  return found;
}

/** The command to list due orders, by default those of all callers without a failed attempt. */
export function toListDue(over: Partial<Command<'ListDue'>> = {}): Command<'ListDue'> {
  return {
    ...{ kind: 'ListDue', hasFailed: false, nowMs: 0, horizonMs: Number.MAX_SAFE_INTEGER },
    ...{ after: 0, callers: 100, perCaller: 100 },
    ...over,
  };
}

/** The orders that are due at a time: those without a failed attempt first. */
export async function due(store: Store, nowMs: number, horizonMs: number): Promise<readonly string[]> {
  const listed = [false, true].map((hasFailed) => perform(store, toListDue({ hasFailed, nowMs, horizonMs })));
  return (await Promise.all(listed)).flat().map(({ escrowId }) => escrowId);
}

/** An update that changes only the given members. */
export function settlementOf(
  { order, notificationCount, lookUpAtMs: expectedLookUpAtMs }: EscrowCase,
  over: Partial<OrderUpdate> = {},
): OrderUpdate {
  return {
    escrowId: order.escrowId,
    from: order.state,
    to: order.state,
    ended: [],
    prepared: undefined,
    reference: undefined,
    holdExpiresAtMs: undefined,
    nextAction: undefined,
    afterPayout: undefined,
    review: undefined,
    resetsAttempts: true,
    notificationCount,
    expectedLookUpAtMs,
    expectedChanges: order.history.length,
    lookUpAtMs: undefined,
    ...over,
  };
}

/** Ends all open instructions of an order. */
export function endedAs(status: OrderUpdate['ended'][number]['status'], found: EscrowCase) {
  return found.open.map(({ instructionId }) => ({ instructionId, status }));
}

/** Updates an order, by default with its instructions confirmed. Asserts that the update was made. */
export async function settled(
  store: Store,
  escrowId: string,
  over: Partial<OrderUpdate>,
  at: BusinessTime = noon,
): Promise<void> {
  const found = await caseOf(store, escrowId);
  const update = settlementOf(found, { ended: endedAs('CONFIRMED', found), ...over });
  assert.ok(await perform(store, { kind: 'UpdateOrder', update, at }));
}

/** Releases or refunds a FROZEN order. */
export async function resolved(
  store: Store,
  by: CallerRef,
  escrowId: string,
  kind: 'RELEASE' | 'REFUND',
  at: BusinessTime = noon,
): Promise<void> {
  await perform(store, toResolve(by, kind, escrowId, { at }));
  await settled(store, escrowId, { to: kind === 'RELEASE' ? 'RELEASED' : 'REFUNDED' }, at);
}

/** Opens an order and freezes it. */
export async function frozen(store: Store, by: CallerRef, filingNo?: string): Promise<TestOrder> {
  const order = await opened(store, by, filingNo);
  await settled(store, order.escrowId, { to: 'FROZEN' });
  return order;
}

/** The states of orders, and the history of each. */
export const waysTo = {
  UNPAID: ['UNPAID'],
  FROZEN: ['UNPAID', 'FROZEN'],
  RELEASED: ['UNPAID', 'FROZEN', 'RELEASED'],
  REFUNDED: ['UNPAID', 'FROZEN', 'REFUNDED'],
  CLOSED: ['UNPAID', 'CLOSED'],
} as const satisfies Record<EscrowState, readonly EscrowState[]>;

/** The states of `waysTo`. */
export const states = Object.keys(waysTo) as readonly EscrowState[];

/** Opens an order and brings it into a state. */
export async function orderIn(store: Store, by: CallerRef, state: EscrowState): Promise<TestOrder> {
  const order = await opened(store, by);
  const { escrowId } = order;
  if (state === 'CLOSED') {
    const found = await caseOf(store, escrowId);
    await settled(store, escrowId, { to: 'CLOSED', ended: endedAs('DECLINED', found) });
  } else if (state !== 'UNPAID') {
    await settled(store, escrowId, { to: 'FROZEN' });
  }
  if (state === 'RELEASED') await resolved(store, by, escrowId, 'RELEASE');
  if (state === 'REFUNDED') await resolved(store, by, escrowId, 'REFUND');
  return order;
}

/** The provider status of a hold of one unit. */
export const oneUnitHeld = { status: 'HELD', amount: 1n, currency: 'CNY' } as const;

/** Puts an order in review. */
export async function stopped(store: Store, escrowId: string, why = 'The amounts differ.'): Promise<void> {
  await settled(store, escrowId, { ended: [], review: { why, found: oneUnitHeld } });
}

/** The number of TRANSFER records of a filing. */
export async function transfersOf(store: Store, filingNo: string): Promise<number> {
  const provenance = await perform(store, { kind: 'GetProvenance', filingNo });
  assert.ok(provenance, filingNo);
  return provenance.records.filter(({ event }) => event === 'TRANSFER').length;
}

/** A new endpoint. */
export function newWebhook(over: Partial<NewWebhook> = {}): NewWebhook {
  return {
    webhookId: `wh_${randomBytes(8).toString('hex')}`,
    origin: 'https://gallery.example',
    sealedUrl: newSeal(),
    eventTypes: undefined,
    description: 'orders \u{1F58C}',
    createdAtS: 1_790_000_000,
    sealedSecret: newSeal(),
    ...over,
  };
}

/** Adds an endpoint. */
export function addWebhook(
  store: Store,
  { callerId }: CallerRef,
  over: Partial<NewWebhook> = {},
): Promise<StoredWebhook> {
  return perform(store, { kind: 'AddWebhook', owner: callerId, webhook: newWebhook(over) });
}

/** A new pre-registration of an address. */
export function newRegistration(email: string, over: Partial<NewRegistration> = {}): NewRegistration {
  return {
    registrationId: `rg_${randomBytes(8).toString('hex')}`,
    emailDigest: createHash('sha256').update(emailKey(email)).digest(),
    ...{ email, name: 'Qi 齐', intendedUse: 'to file ink paintings', tier: 'STANDARD' },
    ...over,
  };
}

/** Adds a pre-registration of an operator. */
export async function preRegistered(store: Store, email: string): Promise<Registration> {
  const added = { kind: 'AddRegistration', by: tester, registration: newRegistration(email) } as const;
  return (await perform(store, added)).registration;
}

/** When the links of `newAccessLink` end, Unix seconds. */
export const linkEndS = 1_790_000_300;

/** A new one-time link. */
export const newAccessLink = (): AccessLink => ({ sha256: randomBytes(32), expiresAtS: linkEndS });

/** Claims the next notice, which must be that of a registration, and records a result. Returns the number of those that are due. */
export async function noticed(store: Store, registrationId: string, result: NoticeResult): Promise<number> {
  const claim = {
    kind: 'ClaimNotice',
    by: undefined,
    attempt: registrationId,
    nowS: 20,
    deadBeforeS: 10,
  } as const;
  const claimed = await perform(store, claim);
  assert.ok(claimed.next === 'SEND', claimed.next);
  assert.equal(claimed.registration.registrationId, registrationId);
  const recorded = {
    registrationId,
    attempt: registrationId,
    result,
    detail: 'as the server said',
    nowS: 21,
  };
  return perform(store, { kind: 'RecordNotice', ...recorded });
}

/** All items of a list, page by page. */
export async function allPages<T>(
  list: (page: PageQuery) => Promise<Page<T>>,
  size: number,
): Promise<readonly (readonly T[])[]> {
  const pages: (readonly T[])[] = [];
  let from: number | undefined;
  do {
    const page = await list({ from, size });
    pages.push(page.items);
    from = page.next;
  } while (from !== undefined);
  return pages;
}

/** Asserts what a list shows, in its order, in full pages of each of these sizes. */
export async function assertListed<T>(
  list: (page: PageQuery) => Promise<Page<T>>,
  shown: (item: T) => unknown,
  expected: readonly unknown[],
  sizes = [1, 2, 3, 100],
): Promise<void> {
  for (const size of sizes) {
    const pages = await allPages(list, size);
    assert.deepEqual(pages.flat().map(shown), expected);
    assert.equal(pages.length, Math.max(1, Math.ceil(expected.length / size)), `pages of ${size}`);
  }
}

/** An instant, Unix seconds. */
export const nowS = 1_790_000_000;

/** The fingerprint of a request. */
export const fingerprint = new Uint8Array(32).fill(1);

/** A command under an idempotency key of a caller. */
export function underKey<K extends Kind>(
  callerId: number,
  key: string,
  effect: Command<K>,
  over: { readonly nowS?: number; readonly sweepAtS?: number; readonly fingerprint?: Uint8Array } = {},
): StoreRequest<K> {
  const given = { nowS, fingerprint, ...over };
  return {
    admission: {
      nowS: given.nowS,
      sweepAtS: given.sweepAtS,
      idempotency: { callerId, key, requestId: 'first', fingerprint: given.fingerprint },
    },
    effect,
  };
}

/** Executes a request, which must be DONE. */
export async function done<K extends Kind>(store: Store, unit: StoreRequest<K>) {
  const { outcome } = await store.execute(unit);
  assert.ok(outcome.kind === 'DONE', outcome.kind);
  return outcome;
}

/** Spends a nonce of a key. Returns whether it is new. */
export function spend(store: Store, keyId: number, nonce: string, atS = nowS, sweepAtS = atS) {
  return isAdmitted(store, { nowS: atS, sweepAtS, nonce: { keyId, nonce } });
}

/** Returns whether an admission without an effect admits a call. */
export async function isAdmitted(store: Store, admission: Admission): Promise<boolean> {
  const { outcome } = await store.execute({ admission });
  return outcome.kind === 'DONE';
}

/** Asserts that a promise is rejected with a reason. */
export async function refused(promise: Promise<unknown>, reason: Reason): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof ApiError, `not an ApiError: ${error}`);
    assert.equal(error.reason, reason, error.message);
    return true;
  });
}

/** The first page of a list. */
export const firstPage = (size = 100): PageQuery => ({ from: undefined, size });

/** Finds an order of any owner, or of a given one. */
export const findEscrow = (store: Store, escrowId: string, owner?: number) =>
  perform(store, { kind: 'GetEscrow', escrowId, owner });

/** Finds a filing of any owner, or of a given one. */
export const findFiling = (store: Store, filingNo: string, owner?: number) =>
  perform(store, { kind: 'GetFiling', filingNo, owner });

/** Finds an instruction. */
export const findInstruction = (store: Store, instructionId: string) =>
  perform(store, { kind: 'FindInstruction', instructionId });

/** Records that an open instruction is sent to the provider. */
export async function recordSent(store: Store, instructionId: string, lookUpAtMs = 1): Promise<void> {
  const { order } = (await findInstruction(store, instructionId)) ?? assert.fail(instructionId);
  const { open, lookUpAtMs: expectedLookUpAtMs } = await caseOf(store, order.escrowId);
  const { status } = open.find((each) => each.instructionId === instructionId) ?? assert.fail(instructionId);
  const sent = { instructionId, status, expectedLookUpAtMs, lookUpAtMs };
  assert.ok(await perform(store, { kind: 'RecordSent', ...sent }));
}

/** The command to decide about an order that needs a review. */
export function toDecide(
  escrowId: string,
  decision: Decision,
  over: Partial<Command<'Decide'>> = {},
): Command<'Decide'> {
  return { kind: 'Decide', by: tester, escrowId, decision, instructionId: randomUUID(), nowMs: 1, ...over };
}

/** Adds a token of an internal caller. */
export const addService = (store: Store, name: string, token = newToken()) =>
  perform(store, { kind: 'AddToken', by: tester, name, token });

/** Finds a platform. */
export const findPlatform = (store: Store, name: string) => perform(store, { kind: 'FindPlatform', name });

/** Changes the status of a platform. */
export const setPlatformStatus = (store: Store, name: string, status: PlatformStatus) =>
  perform(store, { kind: 'SetPlatformStatus', by: tester, name, status });

/** Changes the status of a key. */
export const setKeyStatus = (store: Store, keyId: string, status: KeyStatus) =>
  perform(store, { kind: 'SetKeyStatus', by: tester, keyId, status });

/** Rotates a key. */
export const rotateKey = (store: Store, keyId: string, key = newKey(), endsAtS = nowS + 86_400) =>
  perform(store, { kind: 'RotateKey', by: tester, keyId, key, endsAtS });

/** Takes a notification. Returns whether it is new. */
export const notify = (
  store: Store,
  eventId: string,
  about: Command<'TakeNotification'>['about'],
  nowMs: number,
) => perform(store, { kind: 'TakeNotification', eventId, about, nowMs });

/** Applies an update to an order. */
export const updateOrder = (store: Store, update: OrderUpdate, at = noon) =>
  perform(store, { kind: 'UpdateOrder', update, at });

/** The provenance of a filing. */
export const findProvenance = (store: Store, filingNo: string) =>
  perform(store, { kind: 'GetProvenance', filingNo });

/** All leaves of a store, which make up its root. */
export async function allLeaves(store: Store): Promise<readonly string[]> {
  const { size, root } = await perform(store, { kind: 'GetTree' });
  const leaves = size === 0 ? [] : await perform(store, { kind: 'ReadLeaves', index: 0, width: size });
  assert.ok(leaves);
  let tree = emptyTree;
  for (const leaf of leaves) tree = appendLeaf(tree, leafHash(leaf)).tree;
  assert.deepEqual([leaves.length, rootOf(tree.roots)], [size, Buffer.from(root)]);
  return leaves;
}

/** So many seconds after noon. Records have the whole seconds. */
export const later = (seconds: number): BusinessTime => ({
  atMs: noon.atMs + seconds * 1_000,
  timestamp: new Date(noon.atMs + Math.floor(seconds) * 1_000).toISOString().replace('.000Z', '+00:00'),
});

/** The command to share the filing record of a caller for a minute. */
export const toShare = (
  { callerId }: CallerRef,
  filingNo: string,
  linkId: string,
  over: Partial<Command<'ShareRecord'>> = {},
): Command<'ShareRecord'> => ({
  ...{ kind: 'ShareRecord', by: tester, callerId, owner: callerId, filingNo, sequence: 1 },
  link: { linkId, path: `/evidence/${linkId}`, expiresAt: noon.timestamp },
  expiresAtS: tester.atS + 60,
  ...over,
});

/** The numbers of filings, newest first, page by page. */
export async function filingPages(store: Store, filter: Partial<FilingFilter> = {}, size = 100) {
  const list = (page: PageQuery) =>
    perform(store, { kind: 'ListFilings', filter: { ...anyFiling, ...filter }, page });
  return (await allPages(list, size)).map((page) => page.map(({ filingNo }) => filingNo));
}

/** So many years before today, and so many days later. */
export function yearsAgo(years: number, days: number): BusinessTime {
  const atMs = Temporal.Now.zonedDateTimeISO('UTC').subtract({ years }).epochMilliseconds + days * 86_400_000;
  return time(`${new Date(atMs).toISOString().slice(0, 19)}+00:00`);
}

/** Registers the buyer and the seller of `terms`. */
export async function registerBoth(store: Store, caller: string): Promise<void> {
  await perform(store, toRegister(caller));
  await perform(store, toRegister(caller, { role: 'SELLER' }));
}

/** The audit log, newest first. */
export const auditEntries = async (store: Store, sinceS?: number) =>
  (await perform(store, { kind: 'ListAuditLog', sinceS, page: firstPage() })).items;
