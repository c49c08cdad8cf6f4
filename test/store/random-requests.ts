import type { Actor } from '../../src/domain/audit-entry.ts';
import { type EscrowState, escrowStates, isAfterPayout } from '../../src/domain/escrow.ts';
import { eventRetentionS, eventTypes } from '../../src/domain/event.ts';
import { planUpdate } from '../../src/domain/order-update.ts';
import type { PaymentSnapshot, PaymentStatus } from '../../src/domain/payment.ts';
import { instructionOutcomes } from '../../src/domain/payment.ts';
import { orderEnds } from '../../src/domain/resolution.ts';
import type { NewKey, StoredKey } from '../../src/store/caller-commands.ts';
import type { Instruction } from '../../src/store/escrow-commands.ts';
import type { BusinessTime, CallerRef } from '../../src/store/filing-commands.ts';
import type { Page, PageQuery } from '../../src/store/paging.ts';
import type { EscrowCase } from '../../src/store/reconciliation-commands.ts';
import type {
  Admission,
  Command,
  Executed,
  IdempotencyClaim,
  Kind,
  NonceClaim,
  Result,
  StoreRequest,
} from '../../src/store/store.ts';
import type { DueDelivery, StoredWebhook, WebhookWork } from '../../src/store/webhook-commands.ts';
import type { Random } from '../support/random.ts';
import { neededNames } from './promises/fixtures.ts';

/** Where the simulated time begins: most of its filings are then old enough to be erased at its end. */
const beginningS = Date.UTC(2012, 5, 1) / 1_000;

/** The simulated time goes to here at most: everything before is past its retention by the clock of the database. */
const endS = Date.UTC(2020, 0, 1) / 1_000;

/** Requests that are submitted together, at most. */
const batchMax = 64;

/** How far the clock may go back for a while, in seconds: less than a day, after which filings need an operator. */
const backMaxS = 4_000;

/** What the requests so far have made, as far as further ones refer to it. */
interface World {
  readonly random: Random;
  /** The clock, Unix seconds. */
  nowS: number;
  /** A time that the clock does not go back to: what has expired by then may be deleted. */
  sweepAtS: number;
  readonly callers: CallerRef[];
  readonly platforms: string[];
  readonly keys: StoredKey[];
  readonly tokens: string[];
  readonly filings: { readonly filingNo: string; readonly callerId: number }[];
  readonly orders: string[];
  readonly instructions: string[];
  /** The newest known case of each order. */
  readonly cases: Map<string, EscrowCase>;
  readonly webhooks: StoredWebhook[];
  readonly due: (DueDelivery & { readonly id: number })[];
  readonly links: string[];
  readonly logKeys: string[];
  /** The number of leaves, as last read. */
  leaves: number;
  /** Lists that have a further page. */
  readonly pages: Command[];
  readonly claimed: StoreRequest[];
  /** Nonces that were used once. */
  readonly nonces: NonceClaim[];
  /** Instants between two long periods: what happened before any of them never happens after it. */
  readonly pauses: number[];
  /** The position of the newest event, as last read. */
  events: number;
}

/** Makes a command; undefined if there is nothing that it could be about. */
type Make = (world: World) => Command | undefined;

const hexDigits = '0123456789abcdef';
const oneIn = ({ random }: World, times: number): boolean => random.below(times) === 0;
const id = ({ random }: World, prefix: string): string => `${prefix}_${random.text(hexDigits, 16)}`;
const bytes = ({ random }: World, length: number): Buffer =>
  Buffer.from(random.text(hexDigits, 2 * length), 'hex');
const sealed = (world: World): Buffer => Buffer.concat([Buffer.from('main\0'), bytes(world, 8)]);
const nowMs = (world: World): number => world.nowS * 1_000 + world.random.below(1_000);

/** One of the newest of some items, or one of all. */
function known<T>(world: World, items: readonly T[]): T | undefined {
  const newest = oneIn(world, 4) ? items.length : Math.min(items.length, 12);
  return items[items.length - 1 - world.random.below(newest)];
}

const by = (world: World): Actor => ({
  actor: world.random.pick(['user tester (1000)', 'token tok_1 (ops)']),
  atS: world.nowS,
  reason: oneIn(world, 2) ? undefined : world.random.pick(['ticket 7', "it's “wrong”"]),
});

/** Now, `aheadS` later. Timestamps are of a zone whose year begins before that of UTC. */
function time(world: World, aheadS = 0): BusinessTime {
  const atMs = nowMs(world) + aheadS * 1_000;
  const local = new Date(atMs + 8 * 3_600_000).toISOString();
  return { atMs, timestamp: `${local.slice(0, 19)}+08:00` };
}

const newKey = (world: World): NewKey => ({
  keyId: id(world, 'key'),
  apiKey: id(world, 'ak'),
  sealedSecret: sealed(world),
  createdAtS: world.nowS,
});

const page = (world: World): PageQuery => ({ from: undefined, size: world.random.pick([1, 2, 3, 10, 100]) });

/** A caller id of the list, or undefined for any. */
const owner = (world: World): number | undefined =>
  oneIn(world, 3) ? undefined : known(world, world.callers)?.callerId;

/** A number that was issued, or one that may be issued next or never. */
function filingNo(world: World): string | undefined {
  const { random } = world;
  const last = world.filings.at(-1)?.filingNo;
  if (!oneIn(world, 8) || last === undefined) return known(world, world.filings)?.filingNo;
  const next = Number(last.slice(8)) + 1 + random.below(40);
  return `${last.slice(0, 8)}${String(next).padStart(6, '0')}`;
}

/** Characters that a database could change. */
const characters = [...'aé "\\\'$1?{}%墨🖌\u2028-'];

function artwork(world: World) {
  const { random } = world;
  const text = (most: number) =>
    Array.from({ length: 1 + random.below(most) }, () => random.pick(characters)).join('');
  return {
    ...{ author: text(20), era: text(6), size: text(10), material: text(20), condition: text(60) },
    price: random.pick([0n, 1n, 9_007_199_254_740_991n, BigInt(random.below(1_000_000_000))]),
  };
}

const filingCommands: readonly [number, Make][] = [
  [
    50,
    (world) => {
      const { random } = world;
      const caller = known(world, world.callers);
      const aheadS = oneIn(world, 40) ? random.pick([-200_000, -3_000, 2 * 366 * 86_400]) : 0;
      return (
        caller && {
          ...{ kind: 'FileArtwork', artwork: artwork(world), at: time(world, aheadS), by: caller },
          ...(oneIn(world, 5) && { clockSetByS: random.pick([0, 50, 90_000, -90_000]) }),
          ...(oneIn(world, 3) && { cap: { filings: random.pick([3, 20, 400]), endsInS: 1_000 } }),
        }
      );
    },
  ],
  [15, (world) => ({ kind: 'GetFiling', filingNo: filingNo(world) ?? '', owner: owner(world) })],
  [12, (world) => ({ kind: 'GetProvenance', filingNo: filingNo(world) ?? '' })],
  [
    8,
    (world) => {
      const year = new Date(world.nowS * 1_000).getUTCFullYear() - world.random.below(3);
      const filter = { owner: owner(world), year: oneIn(world, 2) ? undefined : year };
      return { kind: 'ListFilings', filter, page: page(world) };
    },
  ],
  [3, (world) => ({ kind: 'CountFilings', callerId: owner(world) ?? 1, year: yearOf(world) })],
  [2, (world) => ({ kind: 'ListExpired', nowS: world.nowS, page: page(world) })],
  [
    1,
    (world) => {
      // Mostly old filings.
      const some = Array.from({ length: 20 }, () => world.filings[world.random.below(world.filings.length)]);
      // It deletes expired idempotency keys. PostgreSQL has read those of the batch before.
      const operator = { ...by(world), atS: world.sweepAtS };
      return { kind: 'EraseFilings', by: operator, filingNos: some.flatMap((each) => each?.filingNo ?? []) };
    },
  ],
];

const yearOf = (world: World): number => new Date(world.nowS * 1_000).getUTCFullYear();

const recordName = (world: World) => ({
  filingNo: filingNo(world) ?? '',
  sequence: world.random.pick([1, 1, 2, 3]),
  owner: owner(world),
});

const evidenceCommands: readonly [number, Make][] = [
  [5, () => ({ kind: 'GetTree' })],
  [3, (world) => ({ kind: 'GetRoot', size: leafIn(world) })],
  [
    3,
    (world) => {
      const level = world.random.below(9);
      const place = Math.floor(leafIn(world) / 2 ** level);
      return { kind: 'ReadSubtrees', level, place, width: 1 + world.random.below(20) };
    },
  ],
  [4, (world) => ({ kind: 'ReadLeaves', index: leafIn(world), width: 1 + world.random.below(256) })],
  [4, (world) => ({ kind: 'ProveInclusion', index: leafIn(world), size: leafIn(world) })],
  [2, (world) => ({ kind: 'ProveConsistency', from: leafIn(world), to: leafIn(world) })],
  [6, (world) => ({ kind: 'FindRecord', ...recordName(world) })],
  [
    6,
    (world) => {
      const caller = known(world, world.callers);
      const linkId = id(world, 'lnk');
      const expiresAtS = world.nowS + world.random.pick([5, 3_600, 700_000]);
      const link = { linkId, path: `/evidence/${linkId}`, expiresAt: time(world).timestamp };
      return (
        caller && {
          ...{ kind: 'ShareRecord', ...recordName(world), by: by(world) },
          ...{ callerId: caller.callerId, link, expiresAtS },
        }
      );
    },
  ],
  [3, (world) => ({ kind: 'FindLink', linkId: known(world, world.links) ?? '' })],
  [
    3,
    (world) => ({
      ...{ kind: 'ListLinks', filingNo: filingNo(world) ?? '', owner: owner(world) },
      ...{ nowS: world.nowS, page: page(world) },
    }),
  ],
  [
    2,
    (world) => ({
      ...{ kind: 'RevokeLink', by: by(world), linkId: known(world, world.links) ?? '' },
      ...{ filingNo: oneIn(world, 3) ? filingNo(world) : undefined, owner: owner(world) },
    }),
  ],
  [3, (world) => ({ kind: 'VerifyLog', leaves: 1 + world.random.below(200) })],
  [1, () => ({ kind: 'SaveLogIndex' })],
  [4, () => ({ kind: 'ReadLogClock' })],
  [2, (world) => ({ kind: 'AcceptClock', by: by(world) })],
];

/** The index of a leaf, or sometimes one after the last. */
const leafIn = (world: World): number => world.random.below(world.leaves + 3);

const newLogKey = (world: World) => ({
  vkey: `log.example+${world.random.text(hexDigits, 8)}+${world.random.text(hexDigits, 44)}`,
  ...{ sealedSeed: sealed(world), addedAtS: world.nowS },
});

const logCommands: readonly [number, Make][] = [
  [3, () => ({ kind: 'GetLog' })],
  [1, (world) => ({ kind: 'NameLog', origin: 'log.example/one', key: newLogKey(world) })],
  [
    1,
    (world) => ({
      ...{ kind: 'RotateLogKey', by: by(world), key: newLogKey(world) },
      endsAtS: world.nowS + world.random.pick([0, 86_400]),
      ...(oneIn(world, 2) && { signsFromS: world.nowS + 500 }),
    }),
  ],
  [1, (world) => ({ kind: 'EndLogKey', vkey: known(world, world.logKeys) ?? '', atS: world.nowS })],
  [
    1,
    (world) => {
      const origin = `log.example/${world.random.below(8)}`;
      return { kind: 'ForkLog', by: by(world), origin, key: newLogKey(world), previous: '' };
    },
  ],
  [2, (world) => ({ kind: 'KeepCheckpoint', ...checkpoint(world) })],
  [1, (world) => ({ kind: 'KeepTimeStamp', ...checkpoint(world), timeStamp: bytes(world, 6) })],
  [2, (world) => ({ kind: 'FindTimeStamp', leafIndex: leafIn(world) })],
];

const checkpoint = (world: World) => ({
  ...{ size: leafIn(world), publishedAtS: world.nowS },
  note: `log.example/${world.random.pick(['one', '1', '2'])}\n${world.random.below(100)}\n`,
});

const partyId = (world: World, prefix: string): string => `${prefix}-${world.random.below(4)}`;

function work(world: World) {
  const caller = known(world, world.callers);
  return caller && { ...caller, instructionId: id(world, 'ins') };
}

const escrowCommands: readonly [number, Make][] = [
  [
    14,
    (world) => {
      const { random } = world;
      const given = work(world);
      const number = filingNo(world);
      if (given === undefined || number === undefined) return undefined;
      const filedBy = world.filings.find((each) => each.filingNo === number)?.callerId;
      const terms = {
        ...{ filingNo: number, type: 'GUARANTEE' as const, amount: BigInt(1 + random.below(1_000_000)) },
        ...{ buyerId: partyId(world, 'buyer'), sellerId: partyId(world, 'seller') },
      };
      return {
        ...{ kind: 'OpenEscrow', terms, at: time(world), work: given },
        violations: oneIn(world, 20) ? [{ field: 'amount', rule: 'is odd' }] : [],
        parties: oneIn(world, 5) ? neededNames : undefined,
        owner: random.pick([undefined, given.callerId, filedBy]),
      };
    },
  ],
  [
    8,
    (world) => {
      const given = work(world);
      const resolution = world.random.pick(['RELEASE', 'RELEASE', 'REFUND'] as const);
      const escrowId = known(world, world.orders) ?? '';
      return (
        given && {
          ...{ kind: 'PrepareResolution', resolution, escrowId, at: time(world), work: given },
          owner: oneIn(world, 2) ? undefined : given.callerId,
        }
      );
    },
  ],
  [5, (world) => ({ kind: 'GetEscrow', escrowId: known(world, world.orders) ?? '', owner: owner(world) })],
  [
    5,
    (world) => {
      const state = oneIn(world, 2) ? undefined : world.random.pick(escrowStates);
      const filter = {
        ...{ owner: owner(world), state },
        filingNo: oneIn(world, 4) ? filingNo(world) : undefined,
      };
      return { kind: 'ListEscrows', filter, page: page(world) };
    },
  ],
  [3, (world) => ({ kind: 'FindInstruction', instructionId: known(world, world.instructions) ?? '' })],
  [
    6,
    (world) => ({
      ...{ kind: 'RecordSent', instructionId: known(world, world.instructions) ?? '' },
      lookUpAtMs: nowMs(world) + 5_000,
    }),
  ],
  [
    3,
    (world) => ({
      ...{ kind: 'RecordUnanswered', escrowId: known(world, world.orders) ?? '' },
      ...{ lookUpAtMs: nowMs(world) + 9_000, notificationCount: world.random.below(2) },
    }),
  ],
  [20, (world) => ({ kind: 'FindCase', escrowId: known(world, world.orders) ?? '' })],
  [30, updateOrder],
  [1, (world) => ({ kind: 'UseProvider', name: world.random.pick(['simulated', 'stripe']) })],
  [1, (world) => ({ kind: 'ResumeOpen', nowMs: nowMs(world) })],
  [
    4,
    (world) => ({
      ...{ kind: 'ListDue', hasFailed: oneIn(world, 2), nowMs: nowMs(world) },
      ...{ horizonMs: nowMs(world) + 86_400_000, after: world.random.below(5) },
      ...{ callers: 1 + world.random.below(4), perCaller: 1 + world.random.below(10) },
    }),
  ],
  [
    2,
    (world) => {
      const shares = 1 + world.random.below(3);
      const share = world.random.below(shares);
      return { kind: 'ListReleased', share, shares, sinceMs: nowMs(world) - 40 * 86_400_000 };
    },
  ],
  [6, notify],
  [
    4,
    (world) => ({
      ...{ kind: 'Decide', by: by(world), escrowId: inReview(world), instructionId: id(world, 'ins') },
      decision: world.random.pick(['LOOK_AGAIN', 'ACCEPT', 'RETURN', 'STOP'] as const),
      nowMs: nowMs(world),
    }),
  ],
  [
    1,
    (world) => ({
      ...{ kind: 'CloseOrder', by: by(world), escrowId: known(world, world.orders) ?? '' },
      at: time(world),
    }),
  ],
  [
    1,
    (world) => ({
      ...{ kind: 'EndOrder', by: by(world), escrowId: inReview(world), end: world.random.pick(orderEnds) },
      ...{ evidence: world.random.text(hexDigits, 64), at: time(world) },
    }),
  ],
  [
    3,
    (world) => {
      const state = oneIn(world, 2) ? undefined : world.random.pick(escrowStates);
      return { kind: 'ListCases', selection: { state, needsReview: oneIn(world, 2) }, page: page(world) };
    },
  ],
];

/** An order that needs a review, or any. */
function inReview(world: World): string {
  const stopped = [...world.cases.values()].filter(({ review }) => review !== undefined);
  return known(world, stopped)?.order.escrowId ?? known(world, world.orders) ?? '';
}

/** Applies a provider status to an order as reconciliation would. */
function updateOrder(world: World): Command | undefined {
  const before = known(world, [...world.cases.values()]);
  if (before === undefined) return undefined;
  const { order, open, accepted, review, notificationCount } = before;
  const payment = paymentOf(world, before);
  const answered = oneIn(world, 2) ? open.at(-1) : undefined;
  const afterPayout = order.history.findLast(isAfterPayout);
  const { state: from, escrowId, amount } = order;
  const plan = planUpdate(
    { state: from, amount, currency: 'CNY', accepted, afterPayout, isInReview: review !== undefined, open },
    payment,
    answered,
  );
  const until = { url: 'https://pay.example/1?a=b', untilMs: nowMs(world) + 60_000 };
  return {
    kind: 'UpdateOrder',
    at: time(world),
    update: {
      ...{ escrowId, from, to: plan.to, ended: plan.ended, resetsAttempts: plan.resetsAttempts },
      ...{ notificationCount, afterPayout: plan.afterPayout, reference: payment.reference },
      holdExpiresAtMs: payment.holdExpiresAtMs,
      nextAction: plan.awaitsBuyer ? until : undefined,
      prepared: plan.givesBack ? { instructionId: id(world, 'ins'), kind: 'REFUND' } : undefined,
      review: plan.review === undefined ? undefined : { why: plan.review, found: payment },
      lookUpAtMs: plan.nextLookUp === 'NEVER' ? undefined : nowMs(world) + world.random.below(90_000),
    },
  };
}

const likelyStatuses: Readonly<Record<EscrowState, readonly PaymentStatus[]>> = {
  UNPAID: ['HELD', 'HELD', 'AWAITING_BUYER', 'VOID', 'ABSENT'],
  FROZEN: ['HELD', 'PAID_OUT', 'LAPSED'],
  RELEASED: ['PARTLY_RETURNED', 'DISPUTED', 'PAID_OUT'],
  REFUNDED: ['RETURNED'],
  CLOSED: ['VOID', 'HELD'],
};

const anyStatus = Object.keys(instructionOutcomes.FREEZE) as readonly PaymentStatus[];

function paymentOf(world: World, { order, open }: EscrowCase): PaymentSnapshot {
  const { random } = world;
  const kind = open.at(-1)?.kind;
  const asked = kind === 'RELEASE' ? 'PAID_OUT' : kind === 'REFUND' ? 'RETURNED' : undefined;
  const likely = asked !== undefined && !oneIn(world, 4) ? asked : random.pick(likelyStatuses[order.state]);
  const status = oneIn(world, 12) ? random.pick(anyStatus) : likely;
  return {
    ...{ status, amount: oneIn(world, 15) ? 5n : order.amount, currency: 'CNY' },
    reference: oneIn(world, 2) ? undefined : `pi_${order.escrowId}`,
    holdExpiresAtMs: oneIn(world, 2) ? undefined : nowMs(world) + random.below(200_000_000),
    declined: oneIn(world, 6) ? { code: 'no_funds', words: 'No funds.', detail: 'Funds: none' } : undefined,
  };
}

function notify(world: World): Command | undefined {
  const { random } = world;
  const order = known(world, [...world.cases.values()]);
  const about = random.pick([
    { holdId: order?.holdId ?? 'none' },
    { reference: order?.reference ?? 'none' },
    { buyer: { customer: `cus_${random.below(4)}` }, openedSinceMs: nowMs(world) - 9_000_000 },
  ]);
  return { kind: 'TakeNotification', eventId: `evt_${random.below(300)}`, about, nowMs: nowMs(world) };
}

const callerName = (world: World): string =>
  oneIn(world, 4) ? `new ${world.random.below(9)}` : (known(world, world.callers)?.caller ?? 'nobody');

const platformName = (world: World): string => known(world, world.platforms) ?? 'nobody';

const callerCommands: readonly [number, Make][] = [
  [1, () => ({ kind: 'HasCallers' })],
  [
    2,
    (world) => {
      const { random } = world;
      const platform = {
        ...{ name: `platform ${random.below(7)}`, tier: random.pick(['TRIAL', 'ENTERPRISE'] as const) },
        monthlyQuota: random.pick([undefined, 20]),
        filingCap: random.pick([undefined, 7, 500]),
      };
      return { kind: 'AddPlatform', by: by(world), platform, key: newKey(world) };
    },
  ],
  [
    1,
    (world) => ({
      ...{ kind: 'AddToken', by: by(world), name: callerName(world) },
      token: {
        ...{ tokenId: id(world, 'tok'), sha256: bytes(world, 32), scopes: ['read', 'escrow'] },
        ...{ createdAtS: world.nowS, expiresAtS: oneIn(world, 2) ? null : world.nowS + 9_000 },
        platform: oneIn(world, 2) ? undefined : platformName(world),
      },
    }),
  ],
  [1, (world) => ({ kind: 'RevokeToken', by: by(world), tokenId: known(world, world.tokens) ?? '' })],
  [2, (world) => ({ kind: 'ListTokens', page: page(world) })],
  [2, (world) => ({ kind: 'ListKeys', page: page(world) })],
  [
    1,
    (world) => ({
      ...{ kind: 'RotateKey', by: by(world), keyId: known(world, world.keys)?.keyId ?? '' },
      ...{ key: newKey(world), endsAtS: world.nowS + world.random.pick([0, 90_000]) },
    }),
  ],
  [
    1,
    (world) => ({
      ...{ kind: 'SetKeyStatus', by: by(world), keyId: known(world, world.keys)?.keyId ?? '' },
      status: world.random.pick(['ACTIVE', 'SUSPENDED', 'ACTIVE', 'REVOKED'] as const),
    }),
  ],
  [2, (world) => ({ kind: 'FindKey', keyId: known(world, world.keys)?.keyId ?? '' })],
  [1, replaceSeals],
  [1, (world) => ({ kind: 'FindCaller', name: callerName(world) })],
  [1, (world) => ({ kind: 'FindPlatform', name: callerName(world) })],
  [2, (world) => ({ kind: 'ListPlatforms', page: page(world) })],
  [
    1,
    (world) => ({
      ...{ kind: 'SetPlatformStatus', by: by(world), name: platformName(world) },
      status: world.random.pick(['ACTIVE', 'ACTIVE', 'SUSPENDED'] as const),
    }),
  ],
  [
    1,
    (world) => {
      const { random } = world;
      const change = {
        ...{ tier: random.pick([undefined, 'TRIAL', 'STANDARD', 'ENTERPRISE', 'GOLD']), unlimited: false },
        ...{ monthlyQuota: random.pick([undefined, 30]), filingCap: random.pick([undefined, 9]) },
        noFilingCap: oneIn(world, 4),
      };
      return { kind: 'ChangeAgreement', by: by(world), name: callerName(world), change };
    },
  ],
  [2, (world) => ({ kind: 'ListUsage', month: monthOf(world), page: page(world) })],
  [3, (world) => ({ kind: 'CountCalls', callerId: owner(world) ?? 1, month: monthOf(world) })],
];

const monthOf = (world: World): string => new Date(world.nowS * 1_000).toISOString().slice(0, 7);

function replaceSeals(world: World): Command | undefined {
  const key = known(world, world.keys);
  const hook = known(world, world.webhooks);
  const seals = [
    ...(key ? [{ keyId: key.keyId, from: key.sealedSecret, to: sealed(world) }] : []),
    ...(hook ? [{ keyId: hook.webhookId, from: hook.sealedSecret, to: sealed(world) }] : []),
    ...(hook ? [{ keyId: `${hook.webhookId}/url`, from: hook.sealedUrl, to: sealed(world) }] : []),
  ];
  return { kind: 'ReplaceSeals', by: by(world), masterKey: 'main', seals };
}

function party(world: World) {
  const { random } = world;
  const role = random.pick(['BUYER', 'SELLER'] as const);
  const providerIds: Record<string, string> =
    role === 'BUYER'
      ? { paymentMethod: 'pm_1', customer: `cus_${random.below(4)}` }
      : { account: random.pick(['acct_1', 'acct_2']), ...(oneIn(world, 9) && { customer: 'cus_1' }) };
  return { role, partyId: partyId(world, role.toLowerCase()), providerIds };
}

const partyCommands: readonly [number, Make][] = [
  [5, (world) => ({ kind: 'AddParty', caller: callerName(world), party: party(world), by: by(world) })],
  [
    2,
    (world) => {
      const { role, partyId } = party(world);
      return { kind: 'RemoveParty', caller: callerName(world), role, partyId, by: by(world) };
    },
  ],
  [
    3,
    (world) => ({
      ...{ kind: 'ListParties', page: page(world) },
      filter: {
        caller: oneIn(world, 2) ? undefined : callerName(world),
        role: oneIn(world, 2) ? undefined : world.random.pick(['BUYER', 'SELLER'] as const),
      },
    }),
  ],
  [
    1,
    (world) => {
      const parties = Array.from({ length: 1 + world.random.below(6) }, () => ({
        ...{ caller: callerName(world), ...party(world) },
      }));
      const callers = parties.map(({ caller }, index) => ({ caller, field: `parties[${index}].caller` }));
      const violations = oneIn(world, 9) ? [{ field: 'parties', rule: 'are odd' }] : [];
      return {
        ...{ kind: 'ImportParties', parties, callers, violations },
        ...{ isTrial: oneIn(world, 3), by: by(world) },
      };
    },
  ],
];

const webhookName = (world: World) => {
  const webhook = known(world, world.webhooks);
  return {
    webhookId: webhook?.webhookId ?? '',
    owner: oneIn(world, 8) ? owner(world) : oneIn(world, 2) ? undefined : webhook?.callerId,
  };
};

const webhookOperator = (world: World) =>
  oneIn(world, 2) ? undefined : { ...by(world), callerId: oneIn(world, 2) ? undefined : owner(world) };

const someTypes = (world: World) => {
  const types = eventTypes.filter(() => oneIn(world, 2));
  return types.length === 0 ? (['filing.created'] as const) : types;
};

const webhookCommands: readonly [number, Make][] = [
  [
    3,
    (world) => ({
      ...{ kind: 'AddWebhook', owner: known(world, world.callers)?.callerId ?? 1 },
      webhook: {
        ...{ webhookId: id(world, 'wh'), origin: 'https://gallery.example', sealedUrl: sealed(world) },
        ...{ eventTypes: oneIn(world, 2) ? undefined : someTypes(world), description: 'orders 🖌' },
        ...{ createdAtS: world.nowS, sealedSecret: sealed(world) },
      },
    }),
  ],
  [
    2,
    (world) => ({
      ...{ kind: 'ListWebhooks', owner: owner(world), page: page(world), isFailing: oneIn(world, 3) },
      status: world.random.pick([undefined, undefined, 'ENABLED', 'DISABLED'] as const),
    }),
  ],
  [2, (world) => ({ kind: 'FindWebhook', ...webhookName(world) })],
  [
    3,
    (world) => ({
      ...{ kind: 'ChangeWebhook', ...webhookName(world), by: webhookOperator(world) },
      change: {
        ...(oneIn(world, 4) && { url: { origin: 'https://other.example', sealedUrl: sealed(world) } }),
        ...(oneIn(world, 4) && { eventTypes: oneIn(world, 2) ? ('ALL' as const) : someTypes(world) }),
        ...(oneIn(world, 4) && { description: `d${world.random.below(9)}` }),
        status: world.random.pick([undefined, 'ENABLED', 'ENABLED', 'DISABLED'] as const),
      },
    }),
  ],
  [3, (world) => ({ kind: 'BeginWebhookTest', ...webhookName(world), eventId: id(world, 'evt') })],
  [
    2,
    (world) => ({
      ...{ kind: 'RotateWebhookSecret', ...webhookName(world), by: webhookOperator(world) },
      ...{ sealedSecret: sealed(world), previousEndsAtS: world.nowS + 86_400 },
    }),
  ],
  [1, (world) => ({ kind: 'DeleteWebhook', ...webhookName(world), by: webhookOperator(world) })],
  [
    4,
    (world) => ({
      ...{ kind: 'ListDeliveries', ...webhookName(world), page: page(world) },
      status: world.random.pick([undefined, 'PENDING', 'WAITING', 'DELIVERED', 'FAILED'] as const),
    }),
  ],
  [4, redeliver],
  [2, (world) => ({ kind: 'ListSending', page: page(world) })],
  [
    16,
    (world) => ({
      ...{ kind: 'ClaimDeliveries', id: known(world, world.webhooks)?.id ?? 1, nowMs: nowMs(world) },
      limit: 1 + world.random.below(20),
      underWay: world.due.slice(-2).map(({ event }) => event.sequence),
    }),
  ],
  [12, recordAttempts],
];

function redeliver(world: World): Command {
  const { random } = world;
  const after = random.below(60);
  const which = random.pick([
    { sequence: 1 + random.below(80) },
    { after, upTo: after + random.below(200) },
    { sinceMs: pauseIn(world) },
  ]);
  return {
    ...{ kind: 'Redeliver', ...webhookName(world), which, nowMs: nowMs(world), by: webhookOperator(world) },
    ...(oneIn(world, 3) && { counted: 5 }),
  };
}

function recordAttempts(world: World): Command | undefined {
  const { random } = world;
  const due = world.due.splice(-1 - random.below(5));
  if (due.length === 0) return undefined;
  const outcomes = due.map(({ id: of, event, attempts }) => {
    const isDelivered = !oneIn(world, 3);
    return {
      ...{ id: of, sequence: event.sequence, attempts: attempts + 1, atMs: nowMs(world), isDelivered },
      ...{ httpStatus: random.pick([200, 500, null]), answer: oneIn(world, 2) ? null : bytes(world, 5) },
      error: isDelivered ? null : 'status 500',
      retryAtMs: isDelivered || oneIn(world, 4) ? null : nowMs(world) + random.below(400_000_000),
      disables: !isDelivered && oneIn(world, 9) ? 'the endpoint is gone' : undefined,
    };
  });
  // Each is recorded twice at times.
  return { kind: 'RecordAttempts', outcomes: oneIn(world, 9) ? [...outcomes, ...outcomes] : outcomes };
}

/** A pause since which events are kept. */
function pauseIn({ random, pauses, nowS }: World): number {
  const kept = pauses.filter((atS) => atS > nowS - eventRetentionS);
  return (kept.length === 0 ? nowS + backMaxS : random.pick(kept)) * 1_000;
}

const otherCommands: readonly [number, Make][] = [
  [
    6,
    (world) => {
      const { random } = world;
      const from = random.pick([
        { after: undefined },
        { after: random.below(200) },
        { after: undefined, sinceMs: pauseIn(world) },
      ]);
      return { kind: 'ReadEvents', callerId: owner(world) ?? 1, ...from };
    },
  ],
  [
    4,
    (world) => {
      const { random } = world;
      const after = random.pick([0, random.below(world.events + 3), Math.max(0, world.events - 20)]);
      return {
        ...{ kind: 'ReadAllEvents' },
        ...random.pick([{ after: undefined }, { after }, { after: undefined, sinceMs: pauseIn(world) }]),
      };
    },
  ],
  [2, (world) => ({ kind: 'WarnOfEndingHolds', nowMs: nowMs(world), limit: 1_000 })],
  [5, (world) => ({ kind: 'ReadMetrics', nowMs: nowMs(world), year: yearOf(world) })],
  [
    4,
    (world) => ({
      ...{ kind: 'ListAuditLog', page: page(world) },
      sinceS: oneIn(world, 2) ? undefined : world.nowS - world.random.below(900_000),
    }),
  ],
  [1, () => ({ kind: 'FindRestoration' })],
  [1, (world) => ({ kind: 'RecordServing', atS: world.nowS })],
  [1, () => ({ kind: 'RewriteNothing' })],
  [
    3,
    (world) => {
      const reason = world.random.pick(['VALIDATION_FAILED', 'UNAVAILABLE'] as const);
      return { kind: 'Reject', apiError: { reason, message: 'It is odd.', hints: {} } } as Command;
    },
  ],
  [25, (world) => known(world, world.pages)],
];

const commands: readonly (readonly [number, Make])[] = [
  ...[filingCommands, evidenceCommands, logCommands, escrowCommands],
  ...[callerCommands, partyCommands, webhookCommands, otherCommands],
].flat();

function drawn(world: World, from: readonly (readonly [number, Make])[]): Command {
  const total = from.reduce((sum, [weight]) => sum + weight, 0);
  let at = world.random.below(total);
  const make = from.find(([weight]) => {
    at -= weight;
    return at < 0;
  })?.[1];
  return make?.(world) ?? { kind: 'HasCallers' };
}

const fingerprints = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];

/**
 * A nonce that was used once. Nobody uses it a third time: PostgreSQL remembers the last time of each nonce, and SQLite all times that
 * a clock which is set back may come to again.
 */
function usedNonce({ random, nonces }: World): NonceClaim | undefined {
  const newest = Math.max(0, nonces.length - 12);
  return nonces.splice(random.below(2) * newest + random.below(12), 1)[0];
}

function newNonce({ random, nonces }: World): NonceClaim {
  const nonce = { keyId: 1 + random.below(3), nonce: random.text(hexDigits, 8) };
  nonces.push(nonce);
  return nonce;
}

/** What admits a command: often nothing. */
function admission(world: World): Admission | undefined {
  const { random } = world;
  const { callerId } = known(world, world.callers) ?? {};
  if (callerId === undefined || oneIn(world, 2)) return undefined;
  const nonce = (oneIn(world, 8) && usedNonce(world)) || newNonce(world);
  // The quota of a caller stays the same for most calls.
  const limit = oneIn(world, 10) ? random.pick([undefined, 2]) : 5 + 10 * (callerId % 4);
  return {
    ...{ nowS: world.nowS - random.below(3), sweepAtS: world.sweepAtS },
    nonce: oneIn(world, 5) ? undefined : nonce,
    idempotency: oneIn(world, 2)
      ? undefined
      : {
          ...{ callerId, key: random.text(hexDigits, 8), requestId: id(world, 'req') },
          fingerprint: random.pick(fingerprints),
        },
    quota: oneIn(world, 3) ? undefined : { callerId, month: monthOf(world), limit, take: !oneIn(world, 10) },
  };
}

/** A call that was made before, with another nonce and perhaps other content; or the second part of one. */
function repeated(world: World): StoreRequest | undefined {
  const before = known(world, world.claimed);
  const claim = before?.admission?.idempotency;
  if (claim === undefined) return undefined;
  const { effect } = before ?? {};
  if (effect?.kind === 'BeginWebhookTest' && oneIn(world, 2)) return secondPart(world, effect, claim);
  const again = admission(world);
  const fingerprint = oneIn(world, 5) ? world.random.pick(fingerprints) : claim.fingerprint;
  return {
    effect: effect && commandAgain(world, effect),
    admission: {
      ...{ nowS: world.nowS, sweepAtS: world.sweepAtS, nonce: again?.nonce, quota: again?.quota },
      idempotency: { ...claim, fingerprint, requestId: id(world, 'req') },
    },
  };
}

/** The command of a repeated call: with the time of now, and an instruction id of its own. */
function commandAgain(world: World, effect: Command): Command {
  return {
    ...effect,
    ...('at' in effect && { at: time(world) }),
    ...('nowMs' in effect && { nowMs: nowMs(world) }),
    ...('by' in effect &&
      effect.by !== undefined &&
      'atS' in effect.by && { by: { ...effect.by, atS: world.nowS } }),
    ...('work' in effect && { work: { ...effect.work, instructionId: id(world, 'ins') } }),
  } as Command;
}

function secondPart(
  world: World,
  { eventId }: Command<'BeginWebhookTest'>,
  continues: IdempotencyClaim,
): StoreRequest {
  const result = { isDelivered: oneIn(world, 2), httpStatus: 204, answer: bytes(world, 3), error: null };
  return { continues, effect: { kind: 'EndWebhookTest', eventId, result } };
}

function newRequest(world: World, from: readonly (readonly [number, Make])[]): StoreRequest {
  const { idempotency, ...admitted } = admission(world) ?? {};
  const effect = oneIn(world, 40) ? undefined : drawn(world, from);
  const isKeyed = idempotency !== undefined && effect !== undefined && !isKeyless(effect);
  const request: StoreRequest = {
    effect,
    ...('nowS' in admitted && { admission: { ...admitted, idempotency: isKeyed ? idempotency : undefined } }),
  };
  if (isKeyed) world.claimed.push(request);
  return request;
}

/**
 * Whether a command is of no call with a key: it reads, or it has ids or times that every call draws anew, and would have them a second
 * time after the key has expired.
 */
const isKeyless = (effect: Command): boolean =>
  ['page', 'key', 'token', 'outcomes', 'filingNos'].some((member) => member in effect) ||
  /^(Get|Read|Prove|Find)/.test(effect.kind);

/** A request whose caller does not exist: its row breaks a foreign key when it is written. */
function ofNobody(world: World): StoreRequest {
  const filing = { artwork: artwork(world), at: time(world), by: { callerId: 99_999, caller: 'nobody' } };
  return { admission: admission(world), effect: { kind: 'FileArtwork', ...filing } };
}

/** Remembers what a reply says of the store. */
function learn(world: World, effect: Command, result: Result): void {
  const { kind } = effect;
  const learnt = learning[kind] as ((result: Result, effect: Command) => void) | undefined;
  if ('page' in effect && (result as Page<unknown>).next !== undefined) {
    const { next } = result as Page<unknown>;
    world.pages.push({ ...effect, page: { ...effect.page, from: next } } as Command);
  }
  learnt?.call(world, result, effect);
}

type Learning = {
  readonly [K in Kind]?: (this: World, result: Result<K>, effect: Command<K>) => void;
};

function learnCase(this: World, found: EscrowCase | undefined): void {
  if (found !== undefined) this.cases.set(found.order.escrowId, found);
  for (const { instructionId } of found?.open ?? []) learnInstruction(this, instructionId);
}

function learnInstruction(world: World, instructionId: string): void {
  if (!world.instructions.includes(instructionId)) world.instructions.push(instructionId);
}

function learnOrder(this: World, { instructionId, order }: Instruction): void {
  learnInstruction(this, instructionId);
  if (!this.orders.includes(order.escrowId)) this.orders.push(order.escrowId);
}

function learnWebhook(this: World, webhook: StoredWebhook): void {
  const at = this.webhooks.findIndex(({ id: known }) => known === webhook.id);
  this.webhooks.splice(at < 0 ? this.webhooks.length : at, 1, webhook);
}

function learnKey(this: World, key: StoredKey): void {
  this.keys.push(key);
}

const learning: Learning = {
  AddPlatform(key) {
    this.keys.push(key);
    this.callers.push({ callerId: key.callerId, caller: key.caller });
    this.platforms.push(key.caller);
  },
  AddToken({ tokenId, callerId, caller }) {
    this.tokens.push(tokenId);
    if (!this.callers.some((known) => known.callerId === callerId)) this.callers.push({ callerId, caller });
  },
  RotateKey: learnKey,
  FileArtwork({ filingNo: number }, { by: { callerId } }) {
    this.filings.push({ filingNo: number, callerId });
  },
  GetTree({ size }) {
    this.leaves = size;
  },
  ShareRecord({ linkId }) {
    this.links.push(linkId);
  },
  RotateLogKey({ vkey }) {
    this.logKeys.push(vkey);
  },
  OpenEscrow: learnOrder,
  PrepareResolution: learnOrder,
  FindCase: learnCase,
  UpdateOrder: learnCase,
  Decide: learnCase,
  CloseOrder: learnCase,
  EndOrder: learnCase,
  AddWebhook: learnWebhook,
  FindWebhook: learnWebhook,
  ClaimDeliveries({ webhook, due }: WebhookWork) {
    if (webhook !== undefined) this.due.push(...due.map((each) => ({ ...each, id: webhook.id })));
  },
  ReadMetrics({ newestEvent }) {
    this.events = newestEvent;
  },
};

const dayS = 86_400;

/** Most time passes in jumps. Nothing expires in a period but nonces, idempotency keys and what clients chose. */
const periodMaxS = 26 * dayS;

/**
 * Moves the clock, also a little back. Events expire only in a pause between two periods, because the engines do not delete them in the
 * same transactions.
 */
function createClock(world: World) {
  let latestS = beginningS;
  let leftS = periodMaxS;
  return {
    tick: (): void => {
      const { random } = world;
      const draw = random.below(100);
      const jumpS =
        draw < 60
          ? random.below(6)
          : draw < 80
            ? random.below(400)
            : draw < 92
              ? 600 + random.below(1_500)
              : (2 + random.below(8)) * dayS;
      if (jumpS > leftS) return;
      if (jumpS >= dayS) world.pauses.push(latestS + dayS);
      leftS -= jumpS;
      latestS += jumpS;
      world.nowS = oneIn(world, 12) && jumpS < dayS ? latestS - random.below(backMaxS) : latestS;
      world.sweepAtS = latestS - backMaxS;
    },
    /** Lets all events expire. */
    pause: (): void => {
      const { random } = world;
      const lengthS = random.pick([33, 60, 400, 800, 800]) * dayS;
      world.pauses.push(latestS + dayS);
      latestS += latestS + lengthS > endS ? 33 * dayS : lengthS;
      leftS = periodMaxS;
      world.nowS = latestS;
      world.sweepAtS = latestS - backMaxS;
    },
  };
}

const newWorld = (random: Random): World => ({
  ...{
    random,
    nowS: beginningS,
    sweepAtS: beginningS - backMaxS,
    callers: [],
    platforms: [],
    keys: [],
    tokens: [],
    filings: [],
  },
  ...{ orders: [], instructions: [], cases: new Map(), webhooks: [], due: [], links: [], logKeys: [] },
  ...{ leaves: 0, pages: [], claimed: [], nonces: [], pauses: [], events: 0 },
});

/** Batches of a period. */
const periodBatches = 50;

/** Makes requests for a store, which a seed repeats. */
export function createRandomRequests(random: Random) {
  const world = newWorld(random);
  const clock = createClock(world);
  /** The position of the newest event before the last pause. */
  let expired = 0;
  let batches = 0;

  function begin(): StoreRequest[] {
    const added = ['platform 0', 'platform 1', 'platform 2'].map((name) => ({
      ...({ kind: 'AddPlatform', by: by(world), key: newKey(world) } as const),
      platform: { name, tier: 'ENTERPRISE' as const, monthlyQuota: undefined },
    }));
    return added.map((effect) => ({ effect }));
  }

  /** Filings alone: one may have a caller that does not exist. Its rollback would use up ids of other tables. */
  function filings(size: number): StoreRequest[] {
    const made = Array.from({ length: size }, () => newRequest(world, filingCommands.slice(0, 3)));
    if (oneIn(world, 2)) made.splice(random.below(size), 0, ofNobody(world));
    return made;
  }

  return {
    /** The next requests to submit together. They refer to the replies to all before. */
    nextBatch: (): readonly StoreRequest[] => {
      batches += 1;
      if (batches === 1) return begin();
      clock.tick();
      const size = 1 + random.below(oneIn(world, 3) ? 4 : batchMax);
      if (oneIn(world, 8)) return filings(size);
      return Array.from(
        { length: size },
        () => (oneIn(world, 8) ? repeated(world) : undefined) ?? newRequest(world, commands),
      );
    },
    /** What had expired by this time may have been deleted, Unix seconds. */
    sweptAtS: (): number => world.sweepAtS + backMaxS,
    isPeriodOver: (): boolean => batches % periodBatches === 0,
    /**
     * Lets all events expire, and yields requests to submit one after the other. Each deletes some of the events, so that both engines
     * have deleted all of them in the end.
     */
    pause: function* (): Generator<StoreRequest> {
      yield { effect: { kind: 'ReadMetrics', nowMs: nowMs(world), year: yearOf(world) } };
      const count = Math.ceil((world.events - expired) / 2) + 5;
      expired = world.events;
      clock.pause();
      yield { effect: { kind: 'AcceptClock', by: by(world) } };
      const [caller] = world.callers;
      if (caller === undefined) return;
      for (let nth = 0; nth < count; nth += 1)
        yield { effect: { kind: 'FileArtwork', artwork: artwork(world), at: time(world), by: caller } };
      yield { effect: { kind: 'ReadAllEvents', after: undefined } };
    },
    /** Remembers the reply to a request. */
    learn: ({ effect }: StoreRequest, { outcome }: Executed): void => {
      if (effect !== undefined && outcome.kind === 'DONE') learn(world, effect, outcome.result);
    },
  };
}
