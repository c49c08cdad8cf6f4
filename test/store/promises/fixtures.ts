import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import { type Reason, Refusal } from '../../../src/domain/reason.ts';
import type {
  BusinessTime,
  CallerRef,
  CaseSelection,
  EscrowCase,
  EscrowFilter,
  FilingFilter,
  NewKey,
  NewToken,
  Page,
  PageQuery,
  Settlement,
  Store,
  StoredKey,
  StoreOptions,
  Work,
} from '../../../src/store/store.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** An engine of the store, as the suite sees it. */
export interface StoreEngine {
  /** Opens the store that a folder holds, making it if need be. */
  open(options: StoreOptions): Promise<Store>;
}

/** What the stores of tests are made for, unless a test says otherwise. */
export const sandbox = {
  environment: 'sandbox',
  currency: 'CNY',
  opening: 'EITHER',
} as const satisfies Partial<StoreOptions>;

/** Names all filings. */
export const anyFiling: FilingFilter = { owner: undefined, year: undefined };

/** Names all orders. */
export const anyOrder: EscrowFilter = { owner: undefined, state: undefined, filingNo: undefined };

/** Selects the orders that wait for a person. */
export const inNeed: CaseSelection = { state: undefined, isInNeed: true };

type Cleanup = Pick<TestContext, 'after'>;

/** Opens a store on a folder of its own or on a given one; closed after the test. */
export async function openStore(
  test: Cleanup,
  engine: StoreEngine,
  dataDir: string = temporaryFolder(test),
): Promise<Store> {
  const store = await engine.open({ dataDir, ...sandbox });
  test.after(() => store.close());
  return store;
}

/** What a crash at this moment would leave: a copy of the folder, as it is on disk. */
export function crashCopy(test: Cleanup, dataDir: string): string {
  const copy = join(temporaryFolder(test), 'copy');
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

/** An instant by its business timestamp. */
export function time(timestamp: string): BusinessTime {
  return { atMs: Date.parse(timestamp), timestamp };
}

/** An instant like any other. */
export const noon = time('2026-11-21T12:00:00+00:00');

/** An artwork as the store takes it. */
export const painting = { ...artwork, price: BigInt(artwork.price) };

/** Terms as the store takes them. */
export function terms(filingNo: string) {
  const { amount, ...rest } = escrowTerms(filingNo);
  return { ...rest, type: 'GUARANTEE', amount: BigInt(amount) } as const;
}

/** A key as minted. */
export function newKey(over: Partial<NewKey> = {}): NewKey {
  const word = randomBytes(8).toString('hex');
  const sealedSecret = randomBytes(60);
  return { keyId: `key_${word}`, apiKey: `ak_${word}`, sealedSecret, createdAtS: 1_790_000_000, ...over };
}

/** A token as minted. */
export function newToken(over: Partial<NewToken> = {}): NewToken {
  const sha256 = randomBytes(32);
  const tokenId = `tok_${randomBytes(8).toString('hex')}`;
  return { tokenId, sha256, operator: false, createdAtS: 1_790_000_000, ...over };
}

/** Registers a platform without a quota. */
export function addPlatform(store: Store, name: string): Promise<StoredKey> {
  return store.callers.addPlatform({ name, tier: 'ENTERPRISE', monthlyQuota: undefined }, newKey());
}

/** Files an artwork and makes it durable; its number. */
export async function fileOne(store: Store, by: CallerRef, at: BusinessTime = noon): Promise<string> {
  const { filingNo } = await store.filings.file(painting, at, by);
  await store.durable();
  return filingNo;
}

/** What a caller gives an instruction under: a name that no other has, and no idempotency key. */
export function workOf({ callerId, caller }: CallerRef, over: Partial<Work> = {}): Work {
  return { callerId, caller, operationId: randomUUID(), idempotencyKey: undefined, ...over };
}

/** An order of a test. */
export interface TestOrder {
  readonly escrowId: string;
  readonly filingNo: string;
  /** The operation id of its FREEZE. */
  readonly holdId: string;
}

/** Opens an order: for a new filing, or for a given one. */
export async function opened(store: Store, by: CallerRef, filingNo?: string): Promise<TestOrder> {
  const number = filingNo ?? (await fileOne(store, by));
  const { operationId, order } = await store.escrows.open(terms(number), noon, workOf(by), by.callerId);
  return { escrowId: order.escrowId, filingNo: number, holdId: operationId };
}

/** An order as its settlement sees it. */
export async function caseOf(store: Store, escrowId: string): Promise<EscrowCase> {
  const found = await store.escrows.findCase(escrowId);
  assert.ok(found, escrowId);
  return found;
}

/** A settlement of an order that changes nothing, but for what is said. */
export function settlementOf({ order, notices }: EscrowCase, over: Partial<Settlement> = {}): Settlement {
  return {
    escrowId: order.escrowId,
    from: order.state,
    to: order.state,
    ended: [],
    prepared: undefined,
    reference: undefined,
    attention: undefined,
    isHeard: true,
    notices,
    lookUpAtMs: undefined,
    ...over,
  };
}

/** Ends all open instructions of an order. */
export function endedAs(status: Settlement['ended'][number]['status'], found: EscrowCase) {
  return found.open.map(({ operationId }) => ({ operationId, status }));
}

/** Settles an order as it stands, its instructions confirmed; asserts that it was written. */
export async function settled(
  store: Store,
  escrowId: string,
  over: Partial<Settlement>,
  at: BusinessTime = noon,
): Promise<void> {
  const found = await caseOf(store, escrowId);
  const settlement = settlementOf(found, { ended: endedAs('CONFIRMED', found), ...over });
  assert.equal(await store.escrows.settle(settlement, at), true);
}

/** Lets a FROZEN order be paid out or back; at the end it is RELEASED or REFUNDED. */
export async function resolved(
  store: Store,
  by: CallerRef,
  escrowId: string,
  kind: 'RELEASE' | 'REFUND',
  at: BusinessTime = noon,
): Promise<void> {
  await store.escrows.prepare(kind, escrowId, at, workOf(by), undefined);
  await settled(store, escrowId, { to: kind === 'RELEASE' ? 'RELEASED' : 'REFUNDED' }, at);
}

/** Opens an order and has it frozen. */
export async function frozen(store: Store, by: CallerRef, filingNo?: string): Promise<TestOrder> {
  const order = await opened(store, by, filingNo);
  await settled(store, order.escrowId, { to: 'FROZEN' });
  return order;
}

/** All states that an order can be in, and those on the way to each. */
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

/** What an institution says that holds one unit only. */
export const oneUnitHeld = { standing: 'HELD', amount: 1n, currency: 'CNY' } as const;

/** Has an order wait for a person. */
export async function stopped(store: Store, escrowId: string, why = 'The amounts differ.'): Promise<void> {
  await settled(store, escrowId, { ended: [], attention: { why, found: oneUnitHeld } });
}

/** The circulation records of a filing that say that it changed hands. */
export async function transfersOf(store: Store, filingNo: string): Promise<number> {
  const provenance = await store.filings.provenance(filingNo);
  assert.ok(provenance, filingNo);
  return provenance.records.filter(({ event }) => event === 'TRANSFER').length;
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

/** Asserts that a promise is refused with a reason. */
export async function refused(promise: Promise<unknown>, reason: Reason): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof Refusal, `not a refusal: ${error}`);
    assert.equal(error.reason, reason, error.message);
    return true;
  });
}

/** How many of these promises were fulfilled; the others must have been refused with the reason. */
export async function fulfilledOf(promises: readonly Promise<unknown>[], otherwise: Reason): Promise<number> {
  const settled = await Promise.allSettled(promises);
  const rejected = settled.filter((result) => result.status === 'rejected');
  for (const { reason } of rejected) await refused(Promise.reject(reason), otherwise);
  return settled.length - rejected.length;
}
