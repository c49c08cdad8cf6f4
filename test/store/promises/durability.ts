import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Command, type Kind, perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  addService,
  anyFiling,
  anyOrder,
  anyParty,
  caseOf,
  crashCopy,
  fileOne,
  findFiling,
  findInstruction,
  findProvenance,
  firstPage,
  frozen,
  inNeed,
  isAdmitted,
  newKey,
  newLogKey,
  newToken,
  newWebhook,
  noon,
  openGallery,
  openStore,
  refused,
  type StoreEngine,
  settlementOf,
  toFile,
  toOpen,
  toRegister,
  toResolve,
  toTrial,
  updateOrder,
} from './fixtures.ts';

const nowS = 1_790_000_000;
const month = '2026-11';

/** The numbers of all filings, oldest first. */
async function filingsIn(store: Store): Promise<string[]> {
  const page = firstPage();
  const { items } = await perform(store, { kind: 'ListFilings', filter: anyFiling, page });
  return items.map(({ filingNo }) => filingNo).reverse();
}

const somebody = { callerId: 1, caller: 'gallery' };
const page = firstPage(1);
const webhook = { webhookId: 'wh', owner: undefined };
const platform = { name: 'auction house', tier: 'TRIAL', monthlyQuota: 1_000 } as const;
const update = {
  escrowId: 'ES-2026-0000',
  from: 'UNPAID',
  to: 'FROZEN',
  ended: [],
  prepared: undefined,
  reference: undefined,
  holdExpiresAtMs: undefined,
  nextAction: undefined,
  afterPayout: undefined,
  review: undefined,
  resetsAttempts: true,
  notificationCount: 0,
  lookUpAtMs: undefined,
} as const;

/** One of each command. */
const commands: { readonly [K in Kind]: Command<K> } = {
  Reject: { kind: 'Reject', apiError: { reason: 'NOT_FOUND', message: 'no', hints: {} } },
  RewriteNothing: { kind: 'RewriteNothing' },
  FileArtwork: toFile(somebody),
  GetFiling: { kind: 'GetFiling', filingNo: 'AS-2026-000001', owner: undefined },
  ListFilings: { kind: 'ListFilings', filter: anyFiling, page },
  GetTree: { kind: 'GetTree' },
  GetRoot: { kind: 'GetRoot', size: 0 },
  ReadSubtrees: { kind: 'ReadSubtrees', level: 0, place: 0, width: 1 },
  ReadLeaves: { kind: 'ReadLeaves', index: 0, width: 1 },
  ProveInclusion: { kind: 'ProveInclusion', index: 0, size: 1 },
  ProveConsistency: { kind: 'ProveConsistency', from: 0, to: 0 },
  FindRecord: { kind: 'FindRecord', filingNo: 'AS-2026-000001', sequence: 1, owner: undefined },
  ShareRecord: {
    ...{ kind: 'ShareRecord', filingNo: 'AS-2026-000001', sequence: 1, owner: undefined },
    ...{ by: tester, callerId: 1, expiresAtS: nowS },
    link: { linkId: 'el_1', path: '/evidence/token', expiresAt: '2026-11-28T12:00:00+00:00' },
  },
  FindLink: { kind: 'FindLink', linkId: 'el_1' },
  ListLinks: { kind: 'ListLinks', filingNo: 'AS-2026-000001', owner: undefined, nowS, page },
  RevokeLink: { kind: 'RevokeLink', by: tester, linkId: 'el_1', filingNo: undefined, owner: undefined },
  GetLog: { kind: 'GetLog' },
  NameLog: { kind: 'NameLog', origin: 'log.example', key: newLogKey() },
  ForkLog: { kind: 'ForkLog', by: tester, origin: 'log.example/2', key: newLogKey(), previous: '' },
  RotateLogKey: { kind: 'RotateLogKey', by: tester, key: newLogKey(), endsAtS: nowS },
  EndLogKey: { kind: 'EndLogKey', vkey: 'log.example+00000000+', atS: nowS },
  KeepCheckpoint: { kind: 'KeepCheckpoint', size: 1, note: 'log.example\n', publishedAtS: nowS },
  KeepTimeStamp: {
    kind: 'KeepTimeStamp',
    ...{ size: 1, note: 'log.example\n', publishedAtS: nowS, timeStamp: Buffer.of(1) },
  },
  FindTimeStamp: { kind: 'FindTimeStamp', leafIndex: 0 },
  VerifyLog: { kind: 'VerifyLog', leaves: 1 },
  SaveLogIndex: { kind: 'SaveLogIndex' },
  ReadLogClock: { kind: 'ReadLogClock' },
  AcceptClock: { kind: 'AcceptClock', by: tester },
  GetProvenance: { kind: 'GetProvenance', filingNo: 'AS-2026-000001' },
  OpenEscrow: toOpen(somebody, 'AS-2026-000001'),
  PrepareResolution: toResolve(somebody, 'RELEASE', 'ES-2026-0000'),
  GetEscrow: { kind: 'GetEscrow', escrowId: 'ES-2026-0000', owner: undefined },
  ListEscrows: { kind: 'ListEscrows', filter: anyOrder, page },
  FindInstruction: { kind: 'FindInstruction', instructionId: 'op' },
  RecordSent: { kind: 'RecordSent', instructionId: 'op', lookUpAtMs: 1 },
  RecordUnanswered: {
    kind: 'RecordUnanswered',
    escrowId: 'ES-2026-0000',
    lookUpAtMs: 1,
    notificationCount: 0,
  },
  UpdateOrder: { kind: 'UpdateOrder', update, at: noon },
  FindCase: { kind: 'FindCase', escrowId: 'ES-2026-0000' },
  UseProvider: { kind: 'UseProvider', name: 'stripe' },
  FindRestoration: { kind: 'FindRestoration' },
  RecordServing: { kind: 'RecordServing', atS: nowS },
  ResumeOpen: { kind: 'ResumeOpen', nowMs: 1 },
  ListReleased: { kind: 'ListReleased', share: 0, shares: 1, sinceMs: 0 },
  ListDue: {
    ...{ kind: 'ListDue', hasFailed: false, nowMs: 0, horizonMs: 1 },
    ...{ after: 0, callers: 1, perCaller: 1 },
  },
  TakeNotification: { kind: 'TakeNotification', eventId: 'event', about: { holdId: 'op' }, nowMs: 1 },
  Decide: {
    kind: 'Decide',
    by: tester,
    escrowId: 'ES-2026-0000',
    decision: 'ACCEPT',
    instructionId: 'op',
    nowMs: 1,
  },
  EndOrder: {
    ...{ kind: 'EndOrder', by: tester, escrowId: 'ES-2026-0000', end: 'CLOSED' },
    ...{ evidence: '', at: noon },
  },
  CloseOrder: { kind: 'CloseOrder', by: tester, escrowId: 'ES-2026-0000', at: noon },
  ListCases: { kind: 'ListCases', selection: inNeed, page },
  ReadMetrics: { kind: 'ReadMetrics', nowMs: 1, year: 2026 },
  HasCallers: { kind: 'HasCallers' },
  AddPlatform: { kind: 'AddPlatform', by: tester, platform, key: newKey() },
  AddFirstCallers: {
    ...{ kind: 'AddFirstCallers', by: tester, platform, key: newKey() },
    ...{ service: 'ledger', token: newToken() },
  },
  ListKeys: { kind: 'ListKeys', page },
  RotateKey: { kind: 'RotateKey', by: tester, keyId: 'key', key: newKey(), endsAtS: nowS },
  SetKeyStatus: { kind: 'SetKeyStatus', by: tester, keyId: 'key', status: 'SUSPENDED' },
  FindKey: { kind: 'FindKey', keyId: 'key' },
  ReplaceSeals: { kind: 'ReplaceSeals', by: tester, masterKey: 'main', seals: [] },
  FindCaller: { kind: 'FindCaller', name: 'gallery' },
  FindPlatform: { kind: 'FindPlatform', name: 'gallery' },
  ListPlatforms: { kind: 'ListPlatforms', page },
  SetPlatformStatus: { kind: 'SetPlatformStatus', by: tester, name: 'gallery', status: 'SUSPENDED' },
  ChangeAgreement: { kind: 'ChangeAgreement', by: tester, name: 'gallery', change: toTrial },
  ListUsage: { kind: 'ListUsage', month, page },
  AddToken: { kind: 'AddToken', by: tester, name: 'ledger', token: newToken() },
  ListTokens: { kind: 'ListTokens', page },
  RevokeToken: { kind: 'RevokeToken', by: { ...tester, atS: nowS }, tokenId: 'tok' },
  CountFilings: { kind: 'CountFilings', callerId: 1, year: 2026 },
  CountCalls: { kind: 'CountCalls', callerId: 1, month },
  AddParty: toRegister('gallery'),
  RemoveParty: { kind: 'RemoveParty', caller: 'gallery', role: 'BUYER', partyId: 'buyer-1', by: tester },
  ListParties: { kind: 'ListParties', filter: anyParty, page },
  ImportParties: {
    kind: 'ImportParties',
    parties: [],
    callers: [],
    violations: [],
    isTrial: false,
    by: tester,
  },
  ListExpired: { kind: 'ListExpired', nowS, page },
  EraseFilings: { kind: 'EraseFilings', by: tester, filingNos: [] },
  ReadEvents: { kind: 'ReadEvents', callerId: 1, after: undefined },
  ReadAllEvents: { kind: 'ReadAllEvents', after: undefined },
  WarnOfEndingHolds: { kind: 'WarnOfEndingHolds', nowMs: 1, limit: 1 },
  AddWebhook: { kind: 'AddWebhook', owner: 1, webhook: newWebhook() },
  ListWebhooks: { kind: 'ListWebhooks', owner: undefined, page },
  FindWebhook: { kind: 'FindWebhook', ...webhook },
  BeginWebhookTest: { kind: 'BeginWebhookTest', ...webhook, eventId: 'evt' },
  EndWebhookTest: {
    kind: 'EndWebhookTest',
    eventId: 'evt',
    result: { isDelivered: true, httpStatus: 204, answer: null, error: null },
  },
  ChangeWebhook: { kind: 'ChangeWebhook', ...webhook, change: {} },
  RotateWebhookSecret: {
    kind: 'RotateWebhookSecret',
    ...webhook,
    sealedSecret: Buffer.of(1),
    previousEndsAtS: nowS,
  },
  DeleteWebhook: { kind: 'DeleteWebhook', ...webhook },
  ListDeliveries: { kind: 'ListDeliveries', ...webhook, status: undefined, page },
  Redeliver: { kind: 'Redeliver', ...webhook, which: { sequence: 1 }, nowMs: 1 },
  ListSending: { kind: 'ListSending', page },
  ClaimDeliveries: { kind: 'ClaimDeliveries', id: 1, nowMs: 1, limit: 1, underWay: [] },
  RecordAttempts: { kind: 'RecordAttempts', outcomes: [] },
  ListAuditLog: { kind: 'ListAuditLog', sinceS: undefined, page },
};

/** Durability, and what a closed store does. */
export function durabilityPromises(engine: StoreEngine): void {
  test('a resolved request and what it read survive a crash', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const filed = perform(store, toFile(by));
    const seen = perform(store, { kind: 'ListFilings', filter: anyFiling, page });
    await Promise.all([filed, seen]);
    const crashed = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(await filingsIn(crashed), ['AS-2026-000001']);
  });

  test('a crash leaves all of a request or nothing, and the numbers continue from there', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const { escrowId, filingNo } = await frozen(store, by);
    const { instructionId } = await perform(store, toResolve(by, 'RELEASE', escrowId));
    const ended = [{ instructionId, status: 'CONFIRMED' }] as const;
    const change = settlementOf(await caseOf(store, escrowId), {
      to: 'RELEASED',
      reference: 'theirs',
      ended,
    });
    const underWay = [
      updateOrder(store, change),
      store.execute({
        admission: {
          nowS,
          nonce: { keyId: by.id, nonce: 'n' },
          quota: { callerId: by.callerId, month, limit: undefined, take: true },
        },
        effect: toFile(by),
      }),
    ];
    const copy = crashCopy(t, dataDir);
    await Promise.all(underWay);
    const crashed = await openStore(t, engine, copy);

    const { order, reference } = await caseOf(crashed, escrowId);
    const operation = await findInstruction(crashed, instructionId);
    const provenance = await findProvenance(crashed, filingNo);
    assert.deepEqual(
      [order.state, operation?.status, reference, provenance?.records.length],
      order.state === 'RELEASED'
        ? ['RELEASED', 'CONFIRMED', 'theirs', 2]
        : ['FROZEN', 'PREPARED', undefined, 1],
    );
    const filed = (await filingsIn(crashed)).length - 1;
    const calls = await perform(crashed, { kind: 'CountCalls', callerId: by.callerId, month });
    const nonce = { keyId: by.id, nonce: 'n' };
    assert.deepEqual([calls, await isAdmitted(crashed, { nowS, nonce })], [filed, filed === 0]);
    assert.equal(await fileOne(crashed, by), `AS-2026-00000${2 + filed}`);
  });

  test('a request sees every request that resolved before', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { filingNo } = await perform(store, toFile(by));
    const found = await findFiling(store, filingNo, by.callerId);
    assert.equal(found?.caller, 'gallery');
    assert.equal((await findProvenance(store, filingNo))?.records.length, 1);
  });

  test('a request without an effect, or one that rewrites nothing, is done and changes nothing', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filed = fileOne(store, by);
    const outcome = { kind: 'DONE', result: undefined, isReplay: false };
    const effect = { kind: 'RewriteNothing' } as const;
    for (const request of [{}, { admission: { nowS } }, { effect }])
      assert.deepEqual((await store.execute(request)).outcome, outcome);
    assert.equal(await filed, 'AS-2026-000001');
    assert.deepEqual(await filingsIn(store), ['AS-2026-000001']);
  });

  test('requests that are rejected or fail do not affect those submitted with them', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const nonce = { keyId: by.id, nonce: 'n' };
    const [filed, , , admitted] = await Promise.all([
      perform(store, toFile(by)),
      refused(perform(store, commands.UpdateOrder), 'ESCROW_NOT_FOUND'),
      assert.rejects(perform(store, commands.RecordSent), /is no open instruction/),
      isAdmitted(store, { nowS, nonce }),
    ]);
    assert.deepEqual([filed.filingNo, admitted], ['AS-2026-000001', true]);
    const crashed = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(await filingsIn(crashed), ['AS-2026-000001']);
    assert.equal(await isAdmitted(crashed, { nowS, nonce }), false);
  });

  test('closing runs submitted requests, and may be repeated', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const filed = perform(store, toFile(by));
    await Promise.all([store.close(), store.close()]);
    assert.equal((await filed).filingNo, 'AS-2026-000001');
    await store.close();
    assert.deepEqual(await filingsIn(await openStore(t, engine, crashCopy(t, dataDir))), ['AS-2026-000001']);
  });

  test('a closed store rejects all requests with UNAVAILABLE, and still finds keys and tokens', async (t) => {
    const store = await openStore(t, engine);
    const { apiKey } = await addPlatform(store, 'gallery');
    const token = newToken();
    await addService(store, 'ledger', token);
    const known = () => [store.findKey(apiKey)?.caller, store.findToken(token.sha256)?.caller];
    assert.deepEqual(known(), ['gallery', 'ledger']);
    await store.close();
    for (const command of Object.values(commands)) await refused(perform(store, command), 'UNAVAILABLE');
    const nonce = { keyId: 1, nonce: 'n' };
    await refused(store.execute({ admission: { nowS, nonce } }), 'UNAVAILABLE');
    await refused(store.execute({}), 'UNAVAILABLE');
    assert.deepEqual(known(), ['gallery', 'ledger']);
  });

  test('a request during closing is kept or rejected with UNAVAILABLE', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const closed = store.close();
    const late = perform(store, toFile(by)).then(
      ({ filingNo }) => [filingNo],
      (error) => refused(Promise.reject(error), 'UNAVAILABLE').then(() => []),
    );
    await closed;
    assert.deepEqual(await filingsIn(await openStore(t, engine, dataDir)), await late);
  });

  test('thousands of concurrent requests are all kept', async (t) => {
    const store = await openStore(t, engine);
    const nonces = Array.from({ length: 5_000 }, (_, index) => String(index));
    const spend = (nonce: string) => isAdmitted(store, { nowS, nonce: { keyId: 1, nonce } });
    assert.ok((await Promise.all(nonces.map(spend))).every(Boolean));
    assert.ok((await Promise.all(nonces.map(spend))).every((granted) => !granted));
  });
}
