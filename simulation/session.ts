import type { EscrowState } from '../src/domain/escrow.ts';
import type { Reason } from '../src/domain/reason.ts';
import type { Caller, Callers, Platform } from './callers.ts';
import { type Client, createClient, type Outcome } from './client.ts';
import type { Dice } from './dice.ts';
import type { Instance } from './instance.ts';
import { odds, worldLimits } from './limits.ts';
import { buyerIdOf, differing } from './parties.ts';
import {
  filingRequest,
  getRequest,
  listRequest,
  openingRequest,
  type Request,
  resolvingRequest,
} from './requests.ts';
import { must } from './violation.ts';
import { sleep, type World } from './world.ts';

interface SessionOptions {
  readonly world: World;
  readonly callers: Callers;
  /** Returns the instance with a number. Throws ConnectionLost if it is down. */
  readonly instance: (number: number) => Instance;
}

/** The state of one session. */
interface Session extends Pick<SessionOptions, 'world' | 'callers'> {
  readonly name: string;
  readonly number: number;
  readonly dice: Dice;
  readonly client: Client;
  readonly seller: Platform;
  /** Another platform, which owns none of the seller's filings. */
  readonly stranger: Platform;
  /** Returns a new idempotency key, or undefined for about a third of the calls. */
  perhapsKey(): string | undefined;
}

type Resolution = 'RELEASE' | 'REFUND';

const thinkMaxMs = 20_000;
const filingsMax = 3;
const actionsMax = 3;
const amountMax = 1_000_000;

const always: readonly Reason[] = ['UNAVAILABLE', 'IDEMPOTENCY_IN_PROGRESS'];
const ofOpening: readonly Reason[] = [...always, 'PAYMENT_PENDING', 'PAYMENT_DECLINED', 'ESCROW_ACTIVE'];
const ofResolving: readonly Reason[] = [
  ...always,
  'PAYMENT_PENDING',
  'PAYMENT_DECLINED',
  'ESCROW_STATE_CONFLICT',
];

/** Simulates one platform that files artworks and sells one of them one or more times. Other callers interfere. */
export async function runSession(
  { world, callers, instance }: SessionOptions,
  number: number,
): Promise<void> {
  const name = `session-${number}`;
  const dice = world.dice.fork(name);
  const seller = dice.pick(callers.platforms);
  let keys = 0;
  const session: Session = {
    ...{ world, callers, name, number, dice, seller },
    client: createClient({ world, name, dice, instance }),
    stranger: dice.pick(callers.platforms.filter((platform) => platform !== seller)),
    perhapsKey: () => {
      if (dice.oneIn(3)) return undefined;
      keys += 1;
      return `${name}-key-${keys}`;
    },
  };
  let filingNo: string | undefined;
  for (let left = dice.upTo(filingsMax); left > 0; left -= 1) {
    await think(session);
    filingNo = await file(session, `Author ${left} of ${name}`, left - 1);
  }
  const sales = dice.oneIn(3) ? dice.upTo(worldLimits.salesMax) : 1;
  for (let sale = 1; filingNo !== undefined && sale <= sales; sale += 1) {
    await think(session);
    await sell(session, filingNo, sale);
  }
}

const think = ({ world, dice }: Session) => sleep(world, dice.below(thinkMaxMs));

async function file(
  { client, seller, perhapsKey }: Session,
  author: string,
  photographs: number,
): Promise<string | undefined> {
  const filed = await client.insist(seller, filingRequest(author, photographs), always, perhapsKey());
  return filed === 'LOST' ? undefined : filed.json.filingNo;
}

async function sell(session: Session, filingNo: string, sale: number): Promise<void> {
  const { dice, callers, seller, number } = session;
  const who = dice.oneIn(6) ? callers.internal : seller;
  const wrong = dice.oneIn(2) ? differing.always : differing.aWhile;
  const prefix = dice.oneIn(odds.differs) ? wrong : 'buyer';
  const request = openingRequest(filingNo, BigInt(dice.upTo(amountMax)), buyerIdOf(prefix, number, sale));
  await open(session, who, request, filingNo);
  const escrowId = await newestOf(session, who, filingNo);
  if (escrowId === undefined) return;
  for (let left = dice.below(actionsMax + 1); left > 0; left -= 1) {
    await think(session);
    await dice.pick(actions)(session, who, escrowId);
  }
  const isFrozen = (await get(session, who, escrowId)) === 'FROZEN';
  if (isFrozen && !dice.oneIn(4)) await resolve(session, who, dice.pick(['RELEASE', 'REFUND']), escrowId);
}

/** Opens an order. Without a key, sends the request once. With a key, retries it and sometimes sends it concurrently, to two instances. */
async function open(session: Session, who: Caller, request: Request, filingNo: string): Promise<void> {
  const { client, dice, stranger } = session;
  if (dice.oneIn(8)) await expectRejection(session, stranger, request, 'PERMISSION_DENIED');
  const key = session.perhapsKey();
  if (key === undefined) {
    client.sawOpening(await client.send(who, request, ofOpening), key);
    return;
  }
  const number = client.anyNumber();
  const sent = [client.insist(who, request, ofOpening, key, number)];
  if (dice.oneIn(5)) sent.push(client.send(who, request, ofOpening, key, number + 1));
  const outcomes = await Promise.all(sent);
  for (const outcome of outcomes) client.sawOpening(outcome, key);
  if (dice.oneIn(8) && outcomes.some(isKept)) await reuse(session, who, key, filingNo);
}

/** Returns whether the service has stored the key of a call with this outcome. */
function isKept(outcome: Outcome): boolean {
  return outcome !== 'LOST' && (outcome.status === 200 || outcome.json.code === 'PAYMENT_PENDING');
}

/** Sends another request under a key that is in use. */
async function reuse(session: Session, who: Caller, key: string, filingNo: string): Promise<void> {
  const other = openingRequest(filingNo, 1n, 'another buyer');
  await expectRejection(session, who, other, 'IDEMPOTENCY_KEY_REUSED', key);
}

/** Sends a request that the service must reject with a reason. */
async function expectRejection(
  { client, name }: Session,
  who: Caller,
  request: Request,
  reason: Reason,
  key?: string,
): Promise<void> {
  const outcome = await client.send(who, request, [...always, reason], key);
  must(outcome === 'LOST' || outcome.status !== 200, name, `${who.caller} was not rejected with ${reason}`);
}

async function newestOf({ client }: Session, who: Caller, filingNo: string): Promise<string | undefined> {
  const listed = await client.insist(who, listRequest(filingNo), always);
  const newest = listed === 'LOST' ? undefined : listed.json.escrows?.[0];
  if (newest === undefined) return undefined;
  client.sawOrder(newest);
  return newest.escrowId;
}

async function resolve(
  session: Session,
  who: Caller,
  kind: Resolution,
  escrowId: string,
  number?: number,
): Promise<void> {
  const { client, perhapsKey } = session;
  const request = resolvingRequest(kind, escrowId);
  const outcome = await client.insist(who, request, ofResolving, perhapsKey(), number);
  if (outcome === 'LOST' || outcome.status !== 200) return;
  const { escrow } = outcome.json;
  client.sawOrder(escrow);
  // The REFUND of an order without a hold cancels it.
  const expected = kind === 'RELEASE' ? ['RELEASED'] : ['REFUNDED', 'CLOSED'];
  must(expected.includes(escrow.state), escrowId, `the ${kind} returned ${escrow.state}`);
}

/** Gets an order. Returns its state, or undefined if the call failed. */
async function get({ client }: Session, who: Caller, escrowId: string): Promise<EscrowState | undefined> {
  const outcome = await client.send(who, getRequest(escrowId), always);
  if (outcome === 'LOST' || outcome.status !== 200) return undefined;
  client.sawOrder(outcome.json.escrow);
  return outcome.json.escrow.state;
}

/** Another platform tries to read or release the order. */
async function intrude(session: Session, _: Caller, escrowId: string): Promise<void> {
  const request = session.dice.oneIn(2) ? getRequest(escrowId) : resolvingRequest('RELEASE', escrowId);
  await expectRejection(session, session.stranger, request, 'ESCROW_NOT_FOUND');
}

/** A platform exceeds its rate limit and its quota. */
async function exceedLimits({ client, callers, dice }: Session, _: Caller, escrowId: string): Promise<void> {
  const refusals: readonly Reason[] = [...always, 'ESCROW_NOT_FOUND', 'RATE_LIMITED', 'QUOTA_EXCEEDED'];
  const calls = Array.from({ length: dice.upTo(worldLimits.crowdMax) }, () =>
    client.send(callers.limited, getRequest(escrowId), refusals),
  );
  await Promise.all(calls);
}

type Action = (session: Session, who: Caller, escrowId: string) => Promise<unknown>;

const one =
  (kind: Resolution): Action =>
  (session, who, escrowId) =>
    resolve(session, who, kind, escrowId);

const both =
  (first: Resolution, second: Resolution): Action =>
  (session, who, escrowId) => {
    const number = session.client.anyNumber();
    return Promise.all([
      resolve(session, who, first, escrowId, number),
      resolve(session, session.dice.oneIn(2) ? who : session.callers.internal, second, escrowId, number + 1),
    ]);
  };

const actions: readonly Action[] = [
  one('RELEASE'),
  one('RELEASE'),
  one('REFUND'),
  both('RELEASE', 'REFUND'),
  both('RELEASE', 'RELEASE'),
  both('REFUND', 'REFUND'),
  intrude,
  get,
  exceedLimits,
];
