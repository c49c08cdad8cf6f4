import { eventTypes } from '../../src/domain/event.ts';
import type { Command, Kind } from '../../src/store/store.ts';
import { orderMakers } from './random-orders.ts';
import { registrationMakers } from './random-registrations.ts';
import type { Makers, World } from './random-world.ts';

const recordName = (world: World) => ({
  filingNo: world.filingNo(),
  sequence: world.random.pick([1, 1, 2, 3]),
  owner: world.owner(),
});

const filingMakers: Makers = {
  FileArtwork: (world) => {
    const { random } = world;
    const by = world.known(world.callers);
    const aheadS = world.oneIn(40) ? random.pick([-200_000, -3_000, 2 * 366 * 86_400]) : 0;
    return (
      by && {
        ...{ artwork: world.artwork(), at: world.time(aheadS), by },
        ...(world.oneIn(5) && { clockSetByS: random.pick([0, 50, 90_000, -90_000]) }),
        ...(world.oneIn(3) && { cap: { filings: random.pick([3, 20, 400]), endsInS: 1_000 } }),
      }
    );
  },
  GetFiling: (world) => ({ filingNo: world.filingNo(), owner: world.owner() }),
  GetProvenance: (world) => ({ filingNo: world.filingNo() }),
  ListFilings: (world) => {
    const year = world.oneIn(2) ? undefined : world.year() - world.random.below(3);
    return { filter: { owner: world.owner(), year }, page: world.page() };
  },
  CountFilings: (world) => ({ callerId: world.owner() ?? 1, year: world.year() }),
  ListExpired: (world) => ({ nowS: world.nowS, page: world.page() }),
  EraseFilings: (world) => {
    // Mostly old filings.
    const some = Array.from({ length: 20 }, () => world.filings[world.random.below(world.filings.length)]);
    // It deletes expired idempotency keys. PostgreSQL has read those of the batch before.
    const by = { ...world.by(), atS: world.sweepAtS };
    return { by, filingNos: some.flatMap((each) => each?.filingNo ?? []) };
  },
};

const newLogKey = (world: World) => ({
  vkey: `log.example+${world.hex(8)}+${world.hex(44)}`,
  ...{ sealedSeed: world.sealed(), addedAtS: world.nowS },
});

const checkpoint = (world: World) => ({
  ...{ size: world.leaf(), publishedAtS: world.nowS },
  note: `log.example/${world.random.pick(['one', '1', '2'])}\n${world.random.below(100)}\n`,
});

const evidenceMakers: Makers = {
  GetTree: () => ({}),
  GetRoot: (world) => ({ size: world.leaf() }),
  ReadSubtrees: (world) => {
    const level = world.random.below(9);
    return { level, place: Math.floor(world.leaf() / 2 ** level), width: 1 + world.random.below(20) };
  },
  ReadLeaves: (world) => ({ index: world.leaf(), width: 1 + world.random.below(256) }),
  ProveInclusion: (world) => ({ index: world.leaf(), size: world.leaf() }),
  ProveConsistency: (world) => ({ from: world.leaf(), to: world.leaf() }),
  FindRecord: recordName,
  ShareRecord: (world) => {
    const caller = world.known(world.callers);
    const linkId = world.id('lnk');
    const expiresAtS = world.nowS + world.random.pick([5, 3_600, 700_000]);
    const link = { linkId, path: `/evidence/${linkId}`, expiresAt: world.time().timestamp };
    return caller && { ...recordName(world), by: world.by(), callerId: caller.callerId, link, expiresAtS };
  },
  FindLink: (world) => ({ linkId: world.named(world.links) }),
  ListLinks: (world) => ({
    ...{ filingNo: world.filingNo(), owner: world.owner(), nowS: world.nowS, page: world.page() },
  }),
  RevokeLink: (world) => {
    const filingNo = world.oneIn(3) ? world.filingNo() : undefined;
    return { by: world.by(), linkId: world.named(world.links), filingNo, owner: world.owner() };
  },
  VerifyLog: (world) => ({ leaves: 1 + world.random.below(200) }),
  SaveLogIndex: () => ({}),
  ReadLogClock: () => ({}),
  AcceptClock: (world) => ({ by: world.by() }),
  // By little: the requests have one time for all that expires.
  AdvanceClock: (world) => ({ by: world.by(), seconds: 1 }),
  GetLog: () => ({}),
  NameLog: (world) => ({ origin: 'log.example/one', key: newLogKey(world) }),
  RotateLogKey: (world) => ({
    ...{ by: world.by(), key: newLogKey(world), endsAtS: world.nowS + world.random.pick([0, 86_400]) },
    ...(world.oneIn(2) && { signsFromS: world.nowS + 500 }),
  }),
  EndLogKey: (world) => ({ vkey: world.named(world.logKeys), atS: world.nowS }),
  ForkLog: (world) => {
    const origin = `log.example/${world.random.below(8)}`;
    return { by: world.by(), origin, key: newLogKey(world), previous: '' };
  },
  KeepCheckpoint: checkpoint,
  KeepTimeStamp: (world) => ({ ...checkpoint(world), timeStamp: world.bytes(6) }),
  FindTimeStamp: (world) => ({ leafIndex: world.leaf() }),
};

const platformName = (world: World): string => world.known(world.platforms) ?? 'nobody';
const keyId = (world: World): string => world.known(world.keys)?.keyId ?? '';

const callerMakers: Makers = {
  HasCallers: () => ({}),
  AddPlatform: (world) => {
    const { random } = world;
    const platform = {
      ...{ name: `platform ${random.below(7)}`, tier: random.pick(['TRIAL', 'ENTERPRISE'] as const) },
      ...{ monthlyQuota: random.pick([undefined, 20]), filingCap: random.pick([undefined, 7, 500]) },
    };
    return { by: world.by(), platform, key: world.newKey() };
  },
  AddToken: (world) => ({
    ...{ by: world.by(), name: world.callerName() },
    token: {
      ...{ tokenId: world.id('tok'), sha256: world.bytes(32), scopes: ['read', 'escrow'] },
      ...{ createdAtS: world.nowS, expiresAtS: world.oneIn(2) ? null : world.nowS + 9_000 },
      platform: world.oneIn(2) ? undefined : platformName(world),
    },
  }),
  RevokeToken: (world) => ({ by: world.by(), tokenId: world.named(world.tokens) }),
  ListTokens: (world) => ({ page: world.page() }),
  ListKeys: (world) => ({ page: world.page() }),
  RotateKey: (world) => {
    const endsAtS = world.nowS + world.random.pick([0, 90_000]);
    return { by: world.by(), keyId: keyId(world), key: world.newKey(), endsAtS };
  },
  SetKeyStatus: (world) => {
    const status = world.random.pick(['ACTIVE', 'SUSPENDED', 'ACTIVE', 'REVOKED'] as const);
    return { by: world.by(), keyId: keyId(world), status };
  },
  FindKey: (world) => ({ keyId: keyId(world) }),
  ReplaceSeals: (world) => {
    const key = world.known(world.keys);
    const hook = world.known(world.webhooks);
    const seals = [
      ...(key ? [{ keyId: key.keyId, from: key.sealedSecret, to: world.sealed() }] : []),
      ...(hook ? [{ keyId: hook.webhookId, from: hook.sealedSecret, to: world.sealed() }] : []),
      ...(hook ? [{ keyId: `${hook.webhookId}/url`, from: hook.sealedUrl, to: world.sealed() }] : []),
    ];
    return { by: world.by(), masterKey: 'main', seals };
  },
  FindCaller: (world) => ({ name: world.callerName() }),
  FindPlatform: (world) => ({ name: world.callerName() }),
  ListPlatforms: (world) => ({ page: world.page() }),
  SetPlatformStatus: (world) => {
    const status = world.random.pick(['ACTIVE', 'ACTIVE', 'SUSPENDED'] as const);
    return { by: world.by(), name: platformName(world), status };
  },
  ChangeAgreement: (world) => {
    const { random } = world;
    const change = {
      ...{ tier: random.pick([undefined, 'TRIAL', 'STANDARD', 'ENTERPRISE', 'GOLD']), unlimited: false },
      ...{ monthlyQuota: random.pick([undefined, 30]), filingCap: random.pick([undefined, 9]) },
      noFilingCap: world.oneIn(4),
    };
    return { by: world.by(), name: world.callerName(), change };
  },
  ListUsage: (world) => ({ month: world.month(), page: world.page() }),
  CountCalls: (world) => ({ callerId: world.owner() ?? 1, month: world.month() }),
};

const anyRole = (world: World) => world.random.pick(['BUYER', 'SELLER'] as const);

function party(world: World) {
  const { random } = world;
  const role = anyRole(world);
  const providerIds: Record<string, string> =
    role === 'BUYER'
      ? { paymentMethod: 'pm_1', customer: `cus_${random.below(4)}` }
      : { account: random.pick(['acct_1', 'acct_2']), ...(world.oneIn(9) && { customer: 'cus_1' }) };
  return { role, partyId: world.partyId(role.toLowerCase()), providerIds };
}

const partyMakers: Makers = {
  AddParty: (world) => ({ caller: world.callerName(), party: party(world), by: world.by() }),
  RemoveParty: (world) => {
    const { role, partyId } = party(world);
    return { caller: world.callerName(), role, partyId, by: world.by() };
  },
  ListParties: (world) => {
    const caller = world.oneIn(2) ? undefined : world.callerName();
    return { filter: { caller, role: world.oneIn(2) ? undefined : anyRole(world) }, page: world.page() };
  },
  ImportParties: (world) => {
    const length = 1 + world.random.below(6);
    const parties = Array.from({ length }, () => ({ caller: world.callerName(), ...party(world) }));
    const callers = parties.map(({ caller }, index) => ({ caller, field: `parties[${index}].caller` }));
    const violations = world.oneIn(9) ? [{ field: 'parties', rule: 'are odd' }] : [];
    return { parties, callers, violations, isTrial: world.oneIn(3), by: world.by() };
  },
};

function webhookName(world: World) {
  const { webhookId = '', callerId } = world.known(world.webhooks) ?? {};
  return { webhookId, owner: world.oneIn(8) ? world.owner() : world.oneIn(2) ? undefined : callerId };
}

/** A webhook, and who changes it: a platform or an operator. */
const changed = (world: World) => ({
  ...webhookName(world),
  by: world.oneIn(2) ? undefined : { ...world.by(), callerId: world.oneIn(2) ? undefined : world.owner() },
});

const someTypes = (world: World) => {
  const types = eventTypes.filter(() => world.oneIn(2));
  return types.length === 0 ? (['filing.created'] as const) : types;
};

const webhookMakers: Makers = {
  AddWebhook: (world) => ({
    owner: world.known(world.callers)?.callerId ?? 1,
    webhook: {
      ...{ webhookId: world.id('wh'), origin: 'https://gallery.example', sealedUrl: world.sealed() },
      ...{ eventTypes: world.oneIn(2) ? undefined : someTypes(world), description: 'orders 🖌' },
      ...{ createdAtS: world.nowS, sealedSecret: world.sealed() },
    },
  }),
  ListWebhooks: (world) => ({
    ...{ owner: world.owner(), page: world.page(), isFailing: world.oneIn(3) },
    status: world.random.pick([undefined, undefined, 'ENABLED', 'DISABLED'] as const),
  }),
  FindWebhook: webhookName,
  ChangeWebhook: (world) => ({
    ...changed(world),
    change: {
      ...(world.oneIn(4) && { url: { origin: 'https://other.example', sealedUrl: world.sealed() } }),
      ...(world.oneIn(4) && { eventTypes: world.oneIn(2) ? ('ALL' as const) : someTypes(world) }),
      ...(world.oneIn(4) && { description: `d${world.random.below(9)}` }),
      status: world.random.pick([undefined, 'ENABLED', 'ENABLED', 'DISABLED'] as const),
    },
  }),
  BeginWebhookTest: (world) => ({ ...webhookName(world), eventId: world.id('evt') }),
  RotateWebhookSecret: (world) => ({
    ...{ ...changed(world), sealedSecret: world.sealed(), previousEndsAtS: world.nowS + 86_400 },
  }),
  DeleteWebhook: changed,
  ListDeliveries: (world) => ({
    ...{ ...webhookName(world), page: world.page() },
    status: world.random.pick([undefined, 'PENDING', 'WAITING', 'DELIVERED', 'FAILED'] as const),
  }),
  Redeliver: (world) => {
    const { random } = world;
    const after = random.below(60);
    const which = random.pick([
      { sequence: 1 + random.below(80) },
      { after, upTo: after + random.below(200) },
      { sinceMs: world.pauseMs() },
    ]);
    return { ...changed(world), which, nowMs: world.nowMs(), ...(world.oneIn(3) && { counted: 5 }) };
  },
  ListSending: (world) => ({ page: world.page() }),
  ClaimDeliveries: (world) => ({
    ...{ id: world.known(world.webhooks)?.id ?? 1, nowMs: world.nowMs() },
    ...{
      limit: 1 + world.random.below(20),
      underWay: world.due.slice(-2).map(({ event }) => event.sequence),
    },
  }),
  RecordAttempts: (world) => {
    const due = world.due.splice(-1 - world.random.below(5));
    const outcomes = due.map((each) => attempt(world, each));
    // Each is recorded twice at times.
    const repeated = world.oneIn(9) ? outcomes : [];
    return due.length === 0 ? undefined : { outcomes: [...outcomes, ...repeated] };
  },
};

function attempt(world: World, { id, event, attempts }: World['due'][number]) {
  const { random } = world;
  const isDelivered = !world.oneIn(3);
  return {
    ...{ id, sequence: event.sequence, attempts: attempts + 1, atMs: world.nowMs(), isDelivered },
    ...{ httpStatus: random.pick([200, 500, null]), answer: world.oneIn(2) ? null : world.bytes(5) },
    error: isDelivered ? null : 'status 500',
    retryAtMs: isDelivered || world.oneIn(4) ? null : world.nowMs() + random.below(400_000_000),
    disables: !isDelivered && world.oneIn(9) ? 'the endpoint is gone' : undefined,
  };
}

/** Where to read events from: the beginning, a cursor, or a time. */
const eventsFrom = (world: World, ...cursors: readonly number[]) =>
  world.random.pick([
    { after: undefined },
    { after: world.random.pick(cursors) },
    { after: undefined, sinceMs: world.pauseMs() },
  ]);

const otherMakers: Makers = {
  ReadEvents: (world) => ({ callerId: world.owner() ?? 1, ...eventsFrom(world, world.random.below(200)) }),
  ReadAllEvents: (world) =>
    eventsFrom(world, 0, world.random.below(world.events + 3), Math.max(0, world.events - 20)),
  WarnOfEndingHolds: (world) => ({ nowMs: world.nowMs(), limit: 1_000 }),
  ReadMetrics: (world) => ({ nowMs: world.nowMs(), year: world.year() }),
  ListAuditLog: (world) => ({
    ...{ page: world.page(), sinceS: world.oneIn(2) ? undefined : world.nowS - world.random.below(900_000) },
  }),
  FindRestoration: () => ({}),
  RecordServing: (world) => ({ atS: world.nowS }),
  MergeRates: () => ({ periodMs: 0, used: [] }),
  RewriteNothing: () => ({}),
  Reject: (world) => {
    const reason = world.random.pick(['VALIDATION_FAILED', 'UNAVAILABLE'] as const);
    return { apiError: { reason, message: 'It is odd.', hints: {} } };
  },
};

const makers: Makers = {
  ...{ ...filingMakers, ...evidenceMakers, ...orderMakers, ...callerMakers, ...partyMakers },
  ...{ ...webhookMakers, ...registrationMakers, ...otherMakers },
};

/** How often each command is made, relative to one that is not listed. */
const weights: Readonly<Partial<Record<Kind, number>>> = {
  ...{ FileArtwork: 50, GetFiling: 15, GetProvenance: 12, ListFilings: 8, CountFilings: 3, ListExpired: 2 },
  ...{ GetTree: 5, GetRoot: 3, ReadSubtrees: 3, ReadLeaves: 4, ProveInclusion: 4, ProveConsistency: 2 },
  ...{ FindRecord: 6, ShareRecord: 6, FindLink: 3, ListLinks: 3, RevokeLink: 2, VerifyLog: 3 },
  ...{ ReadLogClock: 4, AcceptClock: 2, GetLog: 3, KeepCheckpoint: 2, FindTimeStamp: 2 },
  ...{ OpenEscrow: 14, PrepareResolution: 8, GetEscrow: 5, ListEscrows: 5, FindInstruction: 3 },
  ...{ RecordSent: 6, RecordUnanswered: 3, FindCase: 20, UpdateOrder: 30, ListDue: 4, ListReleased: 2 },
  ...{ TakeNotification: 6, Decide: 4, ListCases: 3, AddPlatform: 2, ListTokens: 2, ListKeys: 2, FindKey: 2 },
  ...{ ListPlatforms: 2, ListUsage: 2, CountCalls: 3, AddParty: 5, RemoveParty: 2, ListParties: 3 },
  ...{ AddWebhook: 3, ListWebhooks: 2, FindWebhook: 2, ChangeWebhook: 3, BeginWebhookTest: 3 },
  ...{ RotateWebhookSecret: 2, ListDeliveries: 4, Redeliver: 4, ListSending: 2, ClaimDeliveries: 16 },
  ...{ RecordAttempts: 12, ReadEvents: 6, ReadAllEvents: 4, WarnOfEndingHolds: 2, ReadMetrics: 5 },
  ...{ ListAuditLog: 4, Reject: 3, AddRegistration: 3, ClaimNotice: 4, RecordNotice: 12, ClaimAccess: 3 },
};

const all = Object.keys(makers) as readonly Kind[];
const weighted = all.flatMap((kind) => Array.from({ length: weights[kind] ?? 1 }, () => kind));

/** A command of one of these kinds, or of any; or the next page of a list. */
export function drawCommand(world: World, kinds?: readonly Kind[]): Command {
  const next = kinds === undefined && world.oneIn(20) ? world.known(world.pages) : undefined;
  if (next !== undefined) return next;
  const kind = world.random.pick(kinds ?? weighted);
  const taken = (makers[kind] as (world: World) => object | undefined)(world);
  return taken === undefined ? { kind: 'HasCallers' } : ({ kind, ...taken } as Command);
}
